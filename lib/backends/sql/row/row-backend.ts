import { type BackendFactory, LockBackend } from '../../../core/index.js';
import { type CommonOptions, refuseStrategy } from '../options.js';
import { OwnConnections } from '../connections/own-connections.js';
import type { SqlDatabase } from '../connections/sql-database.js';
import type { Query } from '../connections/query.js';
import { assertOnePrimary, resolveLockTable } from '../tables/lock-table.js';
import { RowLeaseStore } from './row-lease-store.js';
import { RowPool } from './row-pool.js';

export interface RowBackendOptions extends CommonOptions {
  /**
   * Maximum number of connections for row locks: one for each lock that is held, and one for each that is waited for. Up
   * to two more serve `checkSequencer`. @default 10
   */
  poolSize?: number;
  /**
   * Maximum milliseconds until a new connection is ready for statements. @default 2_000, or the data source's own time-out
   * for connections where that is longer
   */
  connectTimeoutMs?: number;
}

/**
 * The pessimistic lock: `SELECT … FOR UPDATE` on the key's row, in a `READ COMMITTED` transaction that lasts as long as
 * the lock. The server ends the transaction when it hears nothing from it for the TTL, so a frozen holder frees the
 * row, too. MySQL and MariaDB count whole seconds.
 *
 * A holder that dies takes the token that it wrote with it. The next one gets the row later, by the same clock, and so
 * a higher token. Only a clock that was set back meanwhile could repeat one.
 * @throws LockConfigurationError
 */
export function createRowBackend(database: SqlDatabase, options: RowBackendOptions = {}): BackendFactory {
  const { poolSize = 10, requestTimeoutMs = 1_000, patienceMs = 2_000 } = options;
  const { connectTimeoutMs = database.connectTimeoutMs } = options;
  const { dialect } = database;
  const { rowLocks: locks } = dialect;
  const { createTransactionConnection } = database;
  if (!locks || !createTransactionConnection) refuseStrategy('row', `${database.name} locks no single rows`);
  const { table, ensureTableUsable } = resolveLockTable(database, options);
  const timeouts = { connectTimeoutMs, connectTimeoutOption: 'connectTimeoutMs' as const, requestTimeoutMs };
  const connectionSettings = { database, ...timeouts };
  const onOpen = async (query: Query): Promise<void> => {
    await locks.prepare?.(query);
    await assertOnePrimary(query, dialect, 'row');
    await ensureTableUsable(query);
  };
  const onLookConnectionOpen = async (query: Query): Promise<void> => locks.prepareIsHeldBy?.(query);
  return () => {
    const target = {
      table,
      locks,
      pool: new RowPool({ ...connectionSettings, onOpen, createTransactionConnection }, poolSize),
      requestTimeoutMs,
    };
    const lookConnections = new OwnConnections({ ...connectionSettings, onOpen: onLookConnectionOpen });
    const store = new RowLeaseStore(`${database.name}-row`, target, lookConnections);
    return new LockBackend(store, { patienceMs });
  };
}
