import type { HolderMetadata } from '../../../core/index.js';
import type { Query } from '../connections/query.js';
import type { KeyRowStatements } from './key-row.js';
import type { OwnedKey } from './lease-statements.js';
import type { ServerSessions } from './server-sessions.js';

/** Savepoint at which the holder's writes begin. */
export const SAVEPOINT = 'lock_taken';

export interface KeyAndToken {
  readonly key: string;
  readonly fencingToken: bigint;
}

/**
 * All but `prepare`, `prepareToReadOwners` and `isHeldBy` run within the transaction. The answers to `createRow` and
 * `tryLockRow` may have the id of the server's session, `session_id`.
 */
export interface RowLocks {
  readonly keyRow: KeyRowStatements;
  readonly serverSessions: ServerSessions;
  /** The query returns `token` as text, and `is_read_only`. Its parameter is the value of the key's column. */
  selectTokenSql(table: string): string;
  /**
   * Inserts the key's row where it is missing. When another process is inserting it, resolves to false, or fails with a
   * code of `heldCodePattern`.
   */
  createRow(query: Query, table: string, key: string): Promise<boolean>;
  /**
   * Locks the row at once or not at all. Resolves to the columns of `selectTokenSql`, or to no row where the row is
   * missing. When somebody else has the row, resolves to `is_held`, or fails with a code of `heldCodePattern`.
   */
  tryLockRow(query: Query, table: string, key: string): ReturnType<Query>;
  /** Locks the row as `tryLockRow` does, after a wait in the database's own queue that `setLimits` has limited. */
  lockRowAfterWait(query: Query, table: string, key: string): ReturnType<Query>;
  /**
   * Has the server end the connection, and the transaction with it, after `ttlMs` without a statement. It is sent
   * before the row is requested, because the process may be frozen by the time it gets the row. Also limits the wait
   * for the row, and lifts limits of the application that would end the transaction sooner.
   */
  setLimits(query: Query, limits: { readonly ttlMs: number; readonly waitMs: number }): Promise<unknown>;
  restoreLimits(query: Query): Promise<unknown>;
  /**
   * Raises the row's token, shows the owner to `isHeldBy`, and sets the savepoint. Resolves to `undefined` without a
   * row.
   */
  recordHolder(query: Query, table: string, ownedKey: OwnedKey, metadata: HolderMetadata): Promise<bigint | undefined>;
  /** Hides the owner from `isHeldBy` before a commit. Resolves to whether the row still has this token. */
  prepareCommit?(query: Query, table: string, keyAndToken: KeyAndToken): Promise<boolean>;
  /** Undoes all writes since the savepoint, and ends the transaction. The token stays raised. */
  commitWithoutWrites(query: Query, table: string, keyAndToken: KeyAndToken): Promise<void>;
  /** Prepares a new connection. Present where the server, by a setting, could begin transactions itself. */
  prepare?(query: Query): Promise<unknown>;
  /** Present where the default isolation level shows too little to `isHeldBy`. */
  prepareToReadOwners?(query: Query): Promise<void>;
  isHeldBy(query: Query, table: string, ownedKey: OwnedKey): Promise<boolean>;
  /** Codes for a statement that failed because another transaction has the row. */
  readonly heldCodePattern: RegExp;
  /** Codes for a transaction that the database has rolled back in favour of another one, and that may be repeated. */
  readonly busyCodePattern: RegExp;
  /** Codes for a statement with which the whole transaction was rolled back: the row is free. */
  readonly rolledBackCodePattern?: RegExp;
  /** Codes for a statement with which some servers, by a setting, roll the whole transaction back. */
  readonly mayRollBackCodePattern?: RegExp;
  /** Codes for an open transaction that accepts nothing but its end. */
  readonly abortedCodePattern?: RegExp;
}
