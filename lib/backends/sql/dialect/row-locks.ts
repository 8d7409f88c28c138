import type { HolderMetadata } from '../../../core/index.js';
import type { Query } from '../connections/query.js';
import type { KeyRowStatements } from './key-row.js';
import type { OwnedKey } from './lease-statements.js';
import type { ServerSessions } from './server-sessions.js';

/** Name of the savepoint before the holder's writes. */
export const SAVEPOINT = 'lock_taken';

export interface KeyAndToken {
  readonly key: string;
  readonly fencingToken: bigint;
}

/**
 * Statements for locks on a key's row. Except for `prepare`, `prepareToReadOwners` and `isHeldBy`, they run within the
 * transaction. Rows that `createRow` and `tryLockRow` read may have `session_id`, the id of the server's session.
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
   * missing. When another transaction has the row, resolves to a row with `is_held`, or fails with a code of
   * `heldCodePattern`.
   */
  tryLockRow(query: Query, table: string, key: string): ReturnType<Query>;
  /** Locks the row as `tryLockRow` does, after a wait in the database's own queue. `setLimits` must come first. */
  lockRowAfterWait(query: Query, table: string, key: string, waitMs: number): ReturnType<Query>;
  /**
   * Makes the server end the connection, and with it the transaction, after `ttlMs` without a statement. Runs before
   * the row is requested, because the process may freeze while it waits. Also limits the wait for the row, and lifts
   * limits of the application that would end the transaction sooner.
   */
  setLimits(query: Query, limits: { readonly ttlMs: number; readonly waitMs: number }): Promise<unknown>;
  restoreLimits(query: Query): Promise<unknown>;
  /**
   * Raises the row's token, makes the owner visible to `isHeldBy`, and sets the savepoint. Resolves to the token, or to
   * `undefined` where the row is missing.
   */
  recordHolder(query: Query, table: string, ownedKey: OwnedKey, metadata: HolderMetadata): Promise<bigint | undefined>;
  /** Hides the owner from `isHeldBy` before a commit. Resolves to whether the row still has this token. */
  prepareCommit?(query: Query, table: string, keyAndToken: KeyAndToken): Promise<boolean>;
  /** Undoes all writes since the savepoint, and ends the transaction. The token stays raised. */
  commitWithoutWrites(query: Query, table: string, keyAndToken: KeyAndToken): Promise<void>;
  /** Prepares a new connection. Present where a setting could make the server itself begin transactions. */
  prepare?(query: Query): Promise<unknown>;
  /** Present where the default isolation level shows too little to `isHeldBy`. */
  prepareToReadOwners?(query: Query): Promise<void>;
  isHeldBy(query: Query, table: string, ownedKey: OwnedKey): Promise<boolean>;
  /** Codes of errors that mean that another transaction has locked the row. */
  readonly heldCodePattern: RegExp;
  /** Codes of errors after which a transaction that gave way to another one may be repeated. */
  readonly busyCodePattern: RegExp;
  /** Codes of errors after which the whole transaction has been rolled back, so that the row is free. */
  readonly rolledBackCodePattern?: RegExp;
  /** Codes of errors after which some servers, depending on a setting, roll the whole transaction back. */
  readonly mayRollBackCodePattern?: RegExp;
  /** Codes of errors that a failed transaction returns for every statement until it is ended. */
  readonly abortedCodePattern?: RegExp;
}
