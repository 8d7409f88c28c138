import type { Query } from '../connections/query.js';
import type { ClaimStatements } from './claim-statements.js';
import type { ExistingTableTypes } from './existing-table-types.js';
import type { FenceStatements } from './fence-statements.js';
import type { LeaseColumns, LeaseStatements } from './lease-statements.js';
import type { RowLocks } from './row-locks.js';
import type { SessionLocks } from './session-locks.js';

export interface ColumnType {
  readonly sql: string;
  readonly pattern: RegExp;
}

export interface SqlDialect {
  /** Maximum for one `OwnConnections`. The pool of row locks and the listening connection are not counted. */
  readonly maxConnections: number;
  readonly hasSchemas: boolean;
  /**
   * Changes settings of a new session. Resolves to whether `runPrepared` may keep prepared statements in the session,
   * which others share behind a pooler. @param client the driver's own object
   */
  prepareConnection(query: Query, requestTimeoutMs: number, client: unknown): Promise<boolean>;
  quote(name: string): string;
  /** `waiting` is present where the dialect has a `waitingLine`. */
  readonly columnTypes: Readonly<Record<'key' | 'owner' | 'token' | 'time' | 'metadata', ColumnType>> & {
    readonly waiting?: ColumnType;
  };
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
  /** Resolves to the reason why a crash may undo confirmed writes to this table, with advice. */
  durabilityWarning?(query: Query, table: string): Promise<string | undefined>;
  /** Resolves to the name of the table's storage engine if that lacks transactions or row locks. */
  findUnfitEngine?(query: Query, table: string): Promise<string | undefined>;
  /** Resolves to the reason why row-level security hides rows of the table from this user. */
  hiddenRowsWarning?(query: Query, table: string): Promise<string | undefined>;
  /** Resolves to the name of a cluster in which several servers take writes and do not share locks. */
  findMultiPrimaryCluster?(query: Query): Promise<string | undefined>;
  readonly fence: FenceStatements;
  /** Runs one statement without the driver's query method, which is not safe on SQLite. Present on SQLite only. */
  runStatementSafely?(client: unknown, sql: string, values: readonly unknown[]): Awaited<ReturnType<Query>>;
  runPrepared?(client: unknown, sql: string, values: readonly unknown[]): ReturnType<Query>;
  /** Codes for a statement that the database was too busy for. The statement did nothing and may be repeated. */
  readonly busyCodePattern: RegExp;
  /** Codes for a table that is missing, has other columns, or may not be used by this user. */
  readonly tableErrorCodePattern: RegExp;
  leases(columns: LeaseColumns): LeaseStatements;
  claims(table: string): ClaimStatements;
  readonly existingTable: ExistingTableTypes;
  readonly rowLocks?: RowLocks;
  readonly sessionLocks?: SessionLocks;
  readonly waitingLine?: WaitingLine;
}

/**
 * Statements on the waiters of a key, which are kept in the key's row. A release hands the key to the first of them.
 * That waiter has the key for a moment, and must confirm by requesting it. Messages have the form that
 * `WakeUps.deliver` reads.
 */
export interface WaitingLine {
  /**
   * Adds the owner to the end of the line, or records that the owner still waits. A free key goes to the first waiter
   * who was seen lately. Resolves to the milliseconds that the holder may still keep the key: 0 when the owner should
   * ask now.
   */
  joinLine(query: Query, table: string, key: string, owner: string): Promise<number>;
  /** Hashes the owner for messages: its id is a secret, and every client of the database can hear messages. */
  hashOwner(owner: string): string;
  /** Sends a message for this owner, after which a waiter requests the key, and a holder checks its lease. */
  notify(query: Query, table: string, owner: string): Promise<void>;
  /**
   * Records that these owners still wait. Resolves to messages for owners who should ask now, or have lost their place.
   */
  confirmWaiters(query: Query, table: string, keyByOwner: ReadonlyMap<string, string>): Promise<readonly string[]>;
  /** Calls `deliver` for each message on the connection from now on. Resolves to false where no message can arrive. */
  listen(query: Query, client: unknown, table: string, deliver: (message: string) => void): Promise<boolean>;
}
