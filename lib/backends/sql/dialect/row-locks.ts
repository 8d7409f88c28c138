import type { HolderMetadata } from '../../../core/index.js';
import type { Query } from '../connections/query.js';
import type { KeyRow } from './key-row.js';
import type { OwnedKey } from './lease-statements.js';
import type { ServerSessions } from './server-sessions.js';

/** Where the holder's writes begin. */
export const SAVEPOINT = 'lock_taken';

export interface TokenOfRow {
  readonly key: string;
  readonly fencingToken: bigint;
}

/**
 * The statements of databases that lock rows. All but `isHeldBy` run within the transaction. The answers to `create` and
 * `lock` may have the id of the server's session, `session_id`.
 */
export interface RowLocks {
  readonly row: KeyRow;
  readonly serverSessions: ServerSessions;
  /** The key's token as text, and whether the server `is_read_only`; its one parameter is the key's column. */
  token(table: string): string;
  /** Makes the key's row where it is missing. False, or fails as `held`: another process is just making it. */
  create(query: Query, table: string, key: string): Promise<boolean>;
  /**
   * Locks the row at once or not at all. Resolves to the columns of `token`, to nothing where the row is missing, and to
   * `is_held` where somebody else has it. Others fail as `held` then.
   */
  lock(query: Query, table: string, key: string): ReturnType<Query>;
  /** As `lock`, after a wait in the database's own line as `limit` has set it. */
  lockInLine(query: Query, table: string, key: string): ReturnType<Query>;
  /**
   * Has the server end the connection, and the transaction with it, when it hears nothing from it for `ttlMs`. This
   * begins before the row is asked for, since the row may be granted to a process that is frozen by then. Also bounds
   * the wait for the row, until `settle`. No limit of the application's ends the transaction sooner.
   */
  limit(query: Query, times: { readonly ttlMs: number; readonly waitMs: number }): Promise<unknown>;
  /** The row is ours after a wait: gives back the application's own limits of waits and statements. */
  settle(query: Query): Promise<unknown>;
  /** The row's new token, `undefined` if it vanished. Shows `isHeldBy` whose the row is, and sets the savepoint. */
  take(query: Query, table: string, lock: OwnedKey, metadata: HolderMetadata): Promise<bigint | undefined>;
  /** The last statement before a commit: ends what `isHeldBy` sees. Whether the row still has this token. */
  leave?(query: Query, table: string, grant: TokenOfRow): Promise<boolean>;
  /** Instead of a commit: undoes what was written since the savepoint, and ends the transaction. */
  undo(query: Query, table: string, grant: TokenOfRow): Promise<void>;
  /** Readies a new connection for transactions, whatever its session begins with. */
  prepare?(query: Query): Promise<unknown>;
  /** Readies a connection for `isHeldBy`, where a plain one does not see enough. */
  prepareToLook?(query: Query): Promise<void>;
  /** Whether a transaction that took the row for this owner is under way. */
  isHeldBy(query: Query, table: string, lock: OwnedKey): Promise<boolean>;
  /** Codes that say that somebody else has the row. */
  readonly held: RegExp;
  /** Codes of a database that gave the transaction up for the sake of others: it did nothing, and may be tried again. */
  readonly busy: RegExp;
  /** Codes of a database that has rolled the whole transaction back, and freed the row with it. */
  readonly rolledBack?: RegExp;
  /** Codes of a database that may be set to do so. */
  readonly mayRollBack?: RegExp;
  /** Codes for a transaction that is there, but takes nothing more than its end. */
  readonly aborted?: RegExp;
}
