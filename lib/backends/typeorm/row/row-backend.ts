import type { DataSource, DataSourceOptions } from 'typeorm';
import { type BackendFactory, LockBackend } from '../../../core/index.js';
import { assertOptions, type CommonOptions } from '../options.js';
import { DEFAULT_LOCK_TABLE } from '../tables/lock-table.js';
import { OwnConnections } from '../connections/own-connections.js';
import { dialectOf, rowLocksOf } from '../databases.js';
import type { Query } from '../dialect/sql-dialect.js';
import { assertTableName, quotedTable } from '../tables/table-name.js';
import { RowLeaseStore } from './row-lease-store.js';
import { RowPool } from './row-pool.js';

export interface RowBackendOptions extends CommonOptions {
  /**
   * How many connections of their own row locks may use: one for each lock held, and for each waited for. Up to
   * two more serve `checkSequencer`. @default 10
   */
  poolSize?: number;
  /** How long a new connection may take, until it is ready for statements. @default 2_000 */
  connectTimeoutMs?: number;
}

/**
 * The pessimistic lock: `SELECT … FOR UPDATE` on the key's row, in a `READ COMMITTED` transaction that the holder gets
 * (`rowManager(lock)`) and that lasts as long as the lock. What is written through it is committed with success and
 * undone otherwise; a holder that lost the lock cannot commit. PostgreSQL, MySQL 8 and MariaDB; other keys' rows stay
 * free.
 *
 * The TTL is how long the server waits for a word from the transaction (`idle_in_transaction_session_timeout`,
 * `wait_timeout`, in whole seconds): a dead holder frees the row with its connection, a frozen one when that time is
 * over. The renewal uses the same connection, so one statement of the holder's own must not run for longer than the
 * TTL.
 *
 * The token is `max(previous + 1, the server's clock in µs)`. A holder that dies takes the number it wrote with it, but
 * the next one gets the row later, by the same clock, and so a higher number; only a clock set back meanwhile could
 * repeat one.
 * @throws LockConfigurationError
 */
export function rowBackend(
  dataSource: DataSource | { readonly options: DataSourceOptions },
  options: RowBackendOptions = {},
): BackendFactory {
  const { tableName = DEFAULT_LOCK_TABLE, synchronize = false } = options;
  const { poolSize = 10, connectTimeoutMs = 2_000, requestTimeoutMs = 1_000, patienceMs = 2_000 } = options;
  assertOptions('row', options);
  const locks = rowLocksOf(dataSource.options.type);
  assertTableName('tableName', tableName);
  const dialect = dialectOf(dataSource.options.type);
  const table = quotedTable(dialect, dataSource.options, tableName);
  const onOpen = async (query: Query): Promise<void> => locks.prepareToLook?.(query);
  return () => {
    const pool = new RowPool({ options: dataSource.options, table, synchronize, connectTimeoutMs }, poolSize);
    const lookouts = new OwnConnections({
      options: dataSource.options,
      dialect,
      connectTimeoutMs,
      requestTimeoutMs,
      onOpen,
    });
    const name = `typeorm:${dataSource.options.type}-row`;
    const store = new RowLeaseStore(name, { table, locks, pool, requestTimeoutMs }, lookouts);
    return new LockBackend(store, { patienceMs });
  };
}
