import type { Query } from '../connections/query.js';
import type { ClaimStatements } from './claim-statements.js';
import type { ExistingTableTypes } from './existing-table-types.js';
import type { FenceStatements } from './fence-statements.js';
import type { LeaseColumns, LeaseStatements } from './lease-statements.js';
import type { RowLocks } from './row-locks.js';
import type { SessionLocks } from './session-locks.js';

/** A column's type, as `create table` has it and as `describe` shows it. */
export type ColumnType = readonly [sql: string, pattern: RegExp];

/** A database as the locks see it. */
export interface SqlDialect {
  /** How many connections make sense for the locks alone. */
  readonly connections: number;
  /** Whether a table's name may begin with a schema, on MySQL a database. */
  readonly hasSchemas: boolean;
  /**
   * Readies a connection for its first statement; `client` is the driver's own. Resolves to whether the session is ours
   * for as long as the connection, so that `runPrepared` may leave something in it.
   */
  prepare(query: Query, requestTimeoutMs: number, client: unknown): Promise<boolean>;
  quote(name: string): string;
  /** The types of our tables' columns; `waiting` where there is a `line`. */
  readonly types: Readonly<Record<'key' | 'owner' | 'token' | 'time' | 'metadata', ColumnType>> & {
    readonly waiting?: ColumnType;
  };
  /** Follow `create table (…)`. */
  readonly tableOptions: { readonly lock: string; readonly fence: string };
  /**
   * Describes the columns of a table, a row each:
   *
   * - `name` and `type`
   * - `primary_key`: whether it is the primary key
   * - `required`: whether an insert must give it a value
   * - `unique`: whether it has a unique index of its own
   * - `charset`: the character set of its text, where there are several
   */
  describe(query: Query, table: string): ReturnType<Query>;
  /** For servers on which a user with many rights may write to a replica, where no other process would see the lock. */
  assertPrimary?(query: Query): Promise<void>;
  /** The reason why a crash could undo what the server has confirmed in this table, and what to change; else `undefined`. */
  durabilityWarning?(query: Query, table: string): Promise<string | undefined>;
  /** The storage engine of the table when it has no transactions or locks no rows, hence cannot keep our tables. */
  unfitEngine?(query: Query, table: string): Promise<string | undefined>;
  /** The reason why the rows of the table are out of reach for us, by the database's own rules for rows. */
  hiddenRows?(query: Query, table: string): Promise<string | undefined>;
  /** The name of the kind of cluster whose servers take writes without asking each other for locks; else `undefined`. */
  clusterOfPrimaries?(query: Query): Promise<string | undefined>;
  readonly fence: FenceStatements;
  /** Runs one statement where the driver's own way is not safe. */
  runAlone?(client: unknown, sql: string, values: readonly unknown[]): Awaited<ReturnType<Query>>;
  /** Runs one statement whose plan the session keeps. */
  runPrepared?(client: unknown, sql: string, values: readonly unknown[]): ReturnType<Query>;
  /** Codes of a database that was only too busy for a statement, which did nothing and may be sent again. */
  readonly busy: RegExp;
  /** Codes for a table that is missing, of another shape, or forbidden to us. */
  readonly aboutTable: RegExp;
  leases(columns: LeaseColumns): LeaseStatements;
  /** On a table of the migration's. */
  claims(table: string): ClaimStatements;
  readonly existingTable: ExistingTableTypes;
  /** Where it locks single rows. */
  readonly rowLocks?: RowLocks;
  readonly sessionLocks?: SessionLocks;
  /** Where the server can push. */
  readonly line?: WaitingLine;
}

/**
 * The callers who wait for a row's key, on the row. A release hands the key to the first of them, who has it for a
 * moment and confirms by asking. Messages are those of `WakeUps`.
 */
export interface WaitingLine {
  /**
   * Puts the owner at the end, or notes that it is still there. A key that is free goes to the first who was seen of
   * late. Resolves to how many milliseconds the present holder may keep the key: 0 when it is the owner's turn to ask.
   */
  join(query: Query, table: string, key: string, owner: string): Promise<number>;
  /** The owner's name in messages. An owner's id is a secret, and anybody who may connect hears messages. */
  nameOf(owner: string): string;
  /** Notes that they wait. Resolves to the messages that they missed: their turn, or their lost place. */
  look(query: Query, table: string, keys: ReadonlyMap<string, string>): Promise<readonly string[]>;
  /** From now on calls `deliver` with the messages of the connection; false where none would ever arrive. */
  listen(query: Query, client: unknown, table: string, deliver: (message: string) => void): Promise<boolean>;
}
