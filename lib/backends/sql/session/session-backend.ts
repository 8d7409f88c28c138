import { type BackendFactory, LockBackend, type PollingOptions } from '../../../core/index.js';
import { type CommonOptions, refuseStrategy } from '../options.js';
import type { Query } from '../connections/query.js';
import type { SqlDatabase } from '../connections/sql-database.js';
import { assertOnePrimary, resolveLockTable } from '../tables/lock-table.js';
import { SessionLeaseStore } from './session-lease-store.js';

export interface SessionBackendOptions extends CommonOptions, Pick<PollingOptions, 'pollMs'> {
  /**
   * Milliseconds for which the server keeps all locks of this process while it sends nothing. This is the TTL of every
   * lease, whatever `ttlMs` a caller requests. A heartbeat is sent every third of it. MySQL and MariaDB count seconds.
   * @default 10_000
   */
  sessionTtlMs?: number;
}

/**
 * Returns a factory of backends whose locks belong to a session. The server ends a session that sends nothing for
 * `sessionTtlMs`. A holder that is frozen or cut off stops trusting its locks before that. Only an administrator who
 * kills the session can let the next holder in before the former one is told: hence `best-effort`.
 * @throws LockConfigurationError. Where a pooler answers instead of the database, the first `acquire` rejects with one
 */
export function createSessionBackend(database: SqlDatabase, options: SessionBackendOptions = {}): BackendFactory {
  const { requestTimeoutMs = 1_000, sessionTtlMs = 10_000 } = options;
  const { dialect } = database;
  const locks = dialect.sessionLocks ?? refuseStrategy('session', `${database.name} has no locks of sessions`);
  const ttlMs = locks.keyRow.roundUpTtl(sessionTtlMs);
  const { table, ensureTableUsable } = resolveLockTable(database, options);
  const checkTable = async (query: Query): Promise<void> => {
    await assertOnePrimary(query, dialect, 'session');
    await ensureTableUsable(query);
  };
  const settings = { database, locks, ttlMs, table, checkTable };
  const answerTimeoutMs = Math.min(requestTimeoutMs, ttlMs);
  return () => new LockBackend(new SessionLeaseStore(settings, answerTimeoutMs), options);
}
