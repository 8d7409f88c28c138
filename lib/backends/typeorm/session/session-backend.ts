import type { DataSource, DataSourceOptions } from 'typeorm';
import { type BackendFactory, LockBackend, type PollingOptions, systemClock } from '../../../core/index.js';
import { assertOptions, type CommonOptions } from '../options.js';
import { DEFAULT_LOCK_TABLE } from '../tables/lock-table.js';
import { dialectOf, sessionLocksOf } from '../databases.js';
import { assertTableName, quotedTable } from '../tables/table-name.js';
import { SessionLeaseStore } from './session-lease-store.js';

export interface SessionBackendOptions extends CommonOptions, Pick<PollingOptions, 'pollMs'> {
  /**
   * How long the server keeps all locks of this process without a sign of life from it, and so the TTL of every lease,
   * whatever `ttlMs` a caller asks for. The heartbeat is a third of it. MySQL and MariaDB count whole seconds. @default
   * 10_000
   */
  sessionTtlMs?: number;
}

/**
 * Locks of a database session: PostgreSQL's advisory locks (14 or newer), `GET_LOCK` of MySQL and MariaDB. One
 * connection of our own serves all keys; its end is the end of all of them, and is told at once. No row is written to
 * hold a lock, only one to count its fencing tokens.
 *
 * The server ends the session itself when it hears nothing from it for `sessionTtlMs` (`idle_session_timeout`,
 * `wait_timeout`), so a holder that is frozen or cut off loses its locks as a lease does: it stops trusting them first.
 * Only an administrator who kills the session can let the next holder in before the former one is told: hence
 * `best-effort`, and hence the tokens. Nobody can wait on a connection that all share, so waiters ask again every
 * `pollMs`.
 *
 * The key counts within its table and database, and other strategies do not see it: all processes must use the same.
 * @throws LockConfigurationError; when a pooler answers instead of the database, the first `acquire` does
 */
export function sessionBackend(
  dataSource: DataSource | { readonly options: DataSourceOptions },
  options: SessionBackendOptions = {},
): BackendFactory {
  const { tableName = DEFAULT_LOCK_TABLE, synchronize = false } = options;
  const { requestTimeoutMs = 1_000, sessionTtlMs = 10_000 } = options;
  assertOptions('session', options);
  const locks = sessionLocksOf(dataSource.options.type);
  assertTableName('tableName', tableName);
  const ttlMs = locks.ttlMs(sessionTtlMs);
  const table = quotedTable(dialectOf(dataSource.options.type), dataSource.options, tableName);
  const settings = { options: dataSource.options, table, synchronize, ttlMs, clock: systemClock };
  const answerTimeoutMs = Math.min(requestTimeoutMs, ttlMs);
  return () => new LockBackend(new SessionLeaseStore(settings, answerTimeoutMs), options);
}
