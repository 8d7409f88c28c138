import { type BackendFactory, LockBackend, type PollingOptions } from '../../../core/index.js';
import { type CommonOptions, refuseStrategy } from '../options.js';
import type { Query } from '../connections/query.js';
import type { SqlDatabase } from '../connections/sql-database.js';
import { assertOnePrimary, lockTable } from '../tables/lock-table.js';
import { SessionLeaseStore } from './session-lease-store.js';

export interface SessionBackendOptions extends CommonOptions, Pick<PollingOptions, 'pollMs'> {
  /**
   * How long the server keeps all locks of this process without a sign of life from it. This is the TTL of every lease,
   * whatever `ttlMs` a caller asks for. The heartbeat is a third of it. MySQL and MariaDB count whole seconds.
   * @default 10_000
   */
  sessionTtlMs?: number;
}

/**
 * Locks of a database session: PostgreSQL's advisory locks (14 or newer), `GET_LOCK` of MySQL and MariaDB. No row is
 * written to hold a lock, only one to count its fencing tokens.
 *
 * The server ends the session when it hears nothing from it for `sessionTtlMs`. A holder that is frozen or cut off
 * stops trusting its locks before that. Only an administrator who kills the session can let the next holder in before
 * the former one is told: hence `best-effort`. Nobody can wait on a connection that all share, so waiters poll.
 * @throws LockConfigurationError; when a pooler answers instead of the database, the first `acquire` does
 */
export function sessionBackend(database: SqlDatabase, options: SessionBackendOptions = {}): BackendFactory {
  const { requestTimeoutMs = 1_000, sessionTtlMs = 10_000 } = options;
  const { dialect } = database;
  const locks = dialect.sessionLocks ?? refuseStrategy('session', `${database.name} has no locks of sessions`);
  const ttlMs = locks.row.ttlMs(sessionTtlMs);
  const { table, check: checkTable } = lockTable(database, options);
  const check = async (query: Query): Promise<void> => {
    await assertOnePrimary(query, dialect, 'session');
    await checkTable(query);
  };
  const settings = { database, locks, ttlMs, table, check };
  const answerTimeoutMs = Math.min(requestTimeoutMs, ttlMs);
  return () => new LockBackend(new SessionLeaseStore(settings, answerTimeoutMs), options);
}
