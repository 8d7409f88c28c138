import type { Query } from '../connections/query.js';
import type { ClaimStatements } from './claim-statements.js';
import type { ExistingTableTypes } from './existing-table-types.js';
import type { FenceStatements } from './fence-statements.js';
import type { LeaseColumns, LeaseStatements } from './lease-statements.js';
import type { RowLocks } from './row-locks.js';
import type { SessionLocks } from './session-locks.js';

/** Type of a column in our tables. */
export interface ColumnType {
  /** The type in `create table`. */
  readonly sql: string;
  /** Pattern of the type that `describeColumns` reads. */
  readonly pattern: RegExp;
}

/** Statements and properties of a database that the locks need. */
export interface SqlDialect {
  /** Number of connections that the locks share. */
  readonly connectionCount: number;
  /** Whether a table's name may begin with a schema, on MySQL a database. */
  readonly hasSchemas: boolean;
  /**
   * Prepares a connection for its first statement. `client` is the driver's own object. Resolves to whether `runPrepared` may
   * keep statements in the session: behind a pooler, the session belongs to others, too.
   */
  prepareConnection(query: Query, requestTimeoutMs: number, client: unknown): Promise<boolean>;
  quote(name: string): string;
  /** Types of the columns of our tables. `waiting` is there where the dialect has a `waitingLine`. */
  readonly columnTypes: Readonly<Record<'key' | 'owner' | 'token' | 'time' | 'metadata', ColumnType>> & {
    readonly waiting?: ColumnType;
  };
  /** SQL that follows `create table (…)`. */
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
  describeColumns(query: Query, table: string): ReturnType<Query>;
  /** Throws on a replica to which a user with many rights may write: no other process would see the lock there. */
  assertPrimary?(query: Query): Promise<void>;
  /** Resolves to the reason why a crash may undo confirmed writes to this table, with advice; else to `undefined`. */
  durabilityWarning?(query: Query, table: string): Promise<string | undefined>;
  /** Resolves to the storage engine of the table when it has no transactions or locks no rows; else to `undefined`. */
  findUnfitEngine?(query: Query, table: string): Promise<string | undefined>;
  /** Resolves to the reason why row-level security hides the rows of the table from this user; else to `undefined`. */
  hiddenRowsWarning?(query: Query, table: string): Promise<string | undefined>;
  /** Resolves to the name of a cluster in which several servers take writes and do not share locks; else to `undefined`. */
  findMultiPrimaryCluster?(query: Query): Promise<string | undefined>;
  readonly fence: FenceStatements;
  /** Runs one statement instead of the driver, where the driver's own way is not safe. Present on SQLite only. */
  runStatementSafely?(client: unknown, sql: string, values: readonly unknown[]): Awaited<ReturnType<Query>>;
  /** Runs one statement as a prepared statement, whose plan the session keeps. */
  runPrepared?(client: unknown, sql: string, values: readonly unknown[]): ReturnType<Query>;
  /** Codes for a statement that the database was too busy for. The statement did nothing and may be repeated. */
  readonly busyCodes: RegExp;
  /** Codes for a table that is missing, has other columns, or may not be used by this user. */
  readonly tableErrorCodes: RegExp;
  leases(columns: LeaseColumns): LeaseStatements;
  /** Returns the statements for several holders of a key, on a table that this library created. */
  claims(table: string): ClaimStatements;
  readonly existingTable: ExistingTableTypes;
  /** Absent where the database locks no single rows. */
  readonly rowLocks?: RowLocks;
  readonly sessionLocks?: SessionLocks;
  /** Absent where the server cannot notify clients. */
  readonly waitingLine?: WaitingLine;
}

/**
 * Statements on the line of callers who wait for a key, which is kept in the key's row. A release hands the key to the first
 * of them. That waiter has the key for a moment, and must confirm by requesting it. Messages are those of `WakeUps`.
 */
export interface WaitingLine {
  /**
   * Adds the owner to the end of the line, or records that the owner still waits. A free key goes to the first waiter who
   * was seen lately. Resolves to the milliseconds that the holder may still keep the key: 0 when the owner should ask now.
   */
  joinLine(query: Query, table: string, key: string, owner: string): Promise<number>;
  /** Returns the owner's name in messages. The id itself is a secret, and every client of the database can hear messages. */
  hashOwner(owner: string): string;
  /** Sends the owner's process a message, to ask. */
  notify(query: Query, table: string, owner: string): Promise<void>;
  /** Records that these owners still wait. Resolves to messages for owners who should ask now, or have lost their place. */
  confirmWaiters(query: Query, table: string, keys: ReadonlyMap<string, string>): Promise<readonly string[]>;
  /** Calls `deliver` for each message on the connection from now on. Resolves to false where no message can arrive. */
  listen(query: Query, client: unknown, table: string, deliver: (message: string) => void): Promise<boolean>;
}
