import type { Query } from '../connections/query.js';
import type { KeyRow } from './key-row.js';
import type { ServerSessions } from './server-sessions.js';

/** Names on the server: of the lock, and of its present owner's mark. */
export interface LockNames {
  readonly lock: string;
  readonly mark: string;
}

/** Locks that a server keeps for as long as a session lasts. */
export interface SessionLocks {
  readonly row: KeyRow;
  readonly serverSessions: ServerSessions;
  /** The server ends a session that is silent for longer. */
  limitSilence(query: Query, ttlMs: number): Promise<void>;
  /** The scope of a table's lock names: the same however a process names the table. */
  scopeOf(query: Query, table: string): Promise<string>;
  /** The session's id, as the server itself has it, and whether that server no longer takes writes. */
  session(query: Query): Promise<{ readonly id: string; readonly isReadOnly: boolean }>;
  nameOf(scope: string, key: string): string;
  /**
   * One row: `locked` is whether this session has the lock now, `metadata` and `since` are of whoever had it last. Where
   * the server `is_read_only`, the lock is worth nothing, and the session has to end. With the lock goes its owner's
   * mark, another lock, by which everybody sees whether it is still that owner's.
   */
  tryLock(query: Query, table: string, names: LockNames, column: unknown): ReturnType<Query>;
  /** The mark first: it is never there without the lock. */
  unlock(query: Query, names: LockNames): Promise<void>;
  /** The id of the session that has the lock of this name. */
  sessionWith(query: Query, name: string): Promise<string | undefined>;
  /** The statement by which an operator ends a session. */
  endOf(sessionId: string): string;
}
