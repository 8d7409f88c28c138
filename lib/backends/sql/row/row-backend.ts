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
   * Maximum number of connections for row locks: one for each lock that is held, and one for each that is waited for.
   * Up to two more serve `checkSequencer`. @default 10
   */
  poolSize?: number;
  /**
   * Maximum milliseconds until a new connection is ready for statements.
   * @default 2_000, or the data source's own time-out for connections where that is longer
   */
  connectTimeoutMs?: number;
}

/**
 * Returns a factory of backends that lock the key's row by `SELECT … FOR UPDATE`. The transaction is `READ COMMITTED`,
 * and lasts as long as the lock. The server ends a transaction that sends nothing for the TTL, so that a frozen holder
 * loses the row, too. For MySQL and MariaDB, the TTL is rounded up to whole seconds.
 *
 * When a holder dies, the rollback of its transaction undoes its token, too. The next token is still higher, unless the
 * server's clock was set back meanwhile.
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
  const prepareCheckConnection = async (query: Query): Promise<void> => locks.prepareToReadOwners?.(query);
  return () => {
    const target = {
      table,
      locks,
      pool: new RowPool({ ...connectionSettings, onOpen, createTransactionConnection }, poolSize),
      requestTimeoutMs,
    };
    const checkConnections = new OwnConnections({ ...connectionSettings, onOpen: prepareCheckConnection });
    const store = new RowLeaseStore(`${database.name}-row`, target, checkConnections);
    return new LockBackend(store, { patienceMs });
  };
}
