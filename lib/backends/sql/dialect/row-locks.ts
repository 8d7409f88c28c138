import type { HolderMetadata } from '../../../core/index.js';
import type { Query } from '../connections/query.js';
import type { KeyRowStatements } from './key-row.js';
import type { OwnedKey } from './lease-statements.js';
import type { ServerSessions } from './server-sessions.js';

/** Savepoint at which the holder's writes begin. */
export const SAVEPOINT = 'lock_taken';

export interface TokenOfRow {
  readonly key: string;
  readonly fencingToken: bigint;
}

/**
 * The statements of databases that lock rows. All but `isHeldBy` run within the transaction. The answers to `createRow` and
 * `tryLockRow` may have the id of the server's session, `session_id`.
 */
export interface RowLocks {
  readonly keyRow: KeyRowStatements;
  readonly serverSessions: ServerSessions;
  /** Returns a query of the key's `token` as text, and of `is_read_only` of the server. Its parameter is the key's column. */
  selectTokenSql(table: string): string;
  /** Inserts the key's row where it is missing. False, or an error of `heldCodes`: another process is inserting it. */
  createRow(query: Query, table: string, key: string): Promise<boolean>;
  /**
   * Locks the row at once or not at all. Resolves to the columns of `selectTokenSql`, or to no row where the row is missing.
   * When somebody else has the row, it resolves to `is_held`, or fails with an error of `heldCodes`.
   */
  tryLockRow(query: Query, table: string, key: string): ReturnType<Query>;
  /** Locks the row as `tryLockRow` does, after a wait in the database's own queue that `setLimits` has limited. */
  lockRowAfterWait(query: Query, table: string, key: string): ReturnType<Query>;
  /**
   * Has the server end the connection, and the transaction with it, after `ttlMs` without a statement. It is sent before
   * the row is requested, because the process may be frozen by the time it gets the row. Also limits the wait for the row,
   * until `restoreLimits`. Lifts limits of the application that would end the transaction sooner.
   */
  setLimits(query: Query, limits: { readonly ttlMs: number; readonly waitMs: number }): Promise<unknown>;
  /** Restores the application's own limits of waits and statements. Called when the row is locked after a wait. */
  restoreLimits(query: Query): Promise<unknown>;
  /** Raises the row's token, makes the owner visible to `isHeldBy`, and sets the savepoint. `undefined`: the row is gone. */
  recordHolder(query: Query, table: string, lock: OwnedKey, metadata: HolderMetadata): Promise<bigint | undefined>;
  /** Hides the owner from `isHeldBy` before a commit. Resolves to whether the row still has this token. */
  prepareCommit?(query: Query, table: string, tokenOfRow: TokenOfRow): Promise<boolean>;
  /** Undoes all writes since the savepoint, and ends the transaction. The token stays raised. */
  undoWrites(query: Query, table: string, grant: TokenOfRow): Promise<void>;
  /** Prepares a new connection for transactions, whatever the defaults of its session are. */
  prepare?(query: Query): Promise<unknown>;
  /** Prepares a connection for `isHeldBy`, where its default isolation level shows too little. */
  prepareIsHeldBy?(query: Query): Promise<void>;
  /** Resolves to whether a transaction is open that has locked the row for this owner. */
  isHeldBy(query: Query, table: string, lock: OwnedKey): Promise<boolean>;
  /** Codes for a row that somebody else has locked. */
  readonly heldCodes: RegExp;
  /** Codes for a transaction that the database has rolled back in favour of another one, and that may be repeated. */
  readonly busyCodes: RegExp;
  /** Codes for a statement with which the whole transaction was rolled back: the row is free. */
  readonly rolledBackCodes?: RegExp;
  /** Codes for a statement with which some servers, by a setting, roll the whole transaction back. */
  readonly mayRollBackCodes?: RegExp;
  /** Codes for an open transaction that accepts nothing but its end. */
  readonly abortedCodes?: RegExp;
}
