import type { Query } from '../connections/query.js';
import type { KeyRowStatements } from './key-row.js';
import type { ServerSessions } from './server-sessions.js';

/** Names of the lock of a key, and of a second lock that shows its current owner to other sessions. */
export interface LockNames {
  readonly lock: string;
  readonly ownerLock: string;
}

export interface SessionLocks {
  readonly keyRow: KeyRowStatements;
  readonly serverSessions: ServerSessions;
  /** Makes the server end the session after `ttlMs` without a statement. */
  setIdleTimeout(query: Query, ttlMs: number): Promise<void>;
  /** Resolves to the table's schema and name, as namespace of its locks. The given name may have no schema. */
  readNamespace(query: Query, table: string): Promise<string>;
  readSession(query: Query): Promise<{ readonly id: string; readonly isReadOnly: boolean }>;
  toLockName(namespace: string, key: string): string;
  /**
   * Takes the lock, and then the owner lock. Resolves to one row. `locked` is 1 with both locks, 0 with none, and -1
   * with the lock alone, which the caller must free. `metadata` and `since` describe the last holder. If `is_read_only`
   * is true, the server takes no writes: the caller must not use the lock, and must end the session.
   */
  tryLock(query: Query, table: string, names: LockNames, keyColumnValue: unknown): ReturnType<Query>;
  /** Frees the owner lock first, then the lock, so that an owner lock never exists without its lock. */
  unlock(query: Query, names: LockNames): Promise<void>;
  /**
   * Resolves to the id of the session that has both locks at one moment. A session with only one of them may be about
   * to end, because the server frees its locks one after the other.
   */
  findSessionHolding(query: Query, names: LockNames): Promise<string | undefined>;
  /** Ends another session that has both locks. Resolves to whether there was one. It may take a moment to end. */
  endOtherSessionHolding(query: Query, names: LockNames): Promise<boolean>;
  /** Returns the statement by which an operator ends a session. */
  terminateSessionSql(sessionId: string): string;
}
