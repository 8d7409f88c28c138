import type { DataSource, DataSourceOptions } from 'typeorm';
import {
  type LeaseStore,
  type LockBackend,
  LockConfigurationError,
  PollingBackend,
  type PollingOptions,
} from '../../core/index.js';
import { AnnouncedLeaseStore } from './announced-lease-store.js';
import { assertTableName, checkLockTable, DEFAULT_LOCK_TABLE } from './lock-table.js';
import type { ConnectionSettings } from './own-connection.js';
import { OwnConnections } from './own-connections.js';
import { Reaper } from './reaper.js';
import { ReleaseChannel } from './release-channel.js';
import { Sockets } from './sockets.js';
import { dialectOf } from './sql-dialect.js';
import { SqlLeaseStore } from './sql-lease-store.js';

export interface LeaseBackendOptions extends PollingOptions {
  /** @default 'distributed_lock' */
  tableName?: string;
  /** Creates the table where it is missing. Else run the migration `CreateDistributedLock1760000000000`. @default false */
  synchronize?: boolean;
  /** How long to wait for one of our connections to be free, and for a new one to be ready. @default 2_000 */
  connectTimeoutMs?: number;
  /** How long to wait for the answer to one statement. Silence beyond it ends the connection. @default 1_000 */
  statementTimeoutMs?: number;
  /**
   * Deletes rows that nobody has held for so long. Without it every key ever used keeps its row. A token goes on growing
   * without its row, by the database's clock: longer than that clock could ever step back. @default Infinity
   */
  reapIdleAfterMs?: number;
}

/**
 * Locks in a table of the application's own database: PostgreSQL, MySQL, MariaDB, or SQLite (`better-sqlite3`, or `libsql` as
 * its driver). Each statement is a transaction of its own, on up to two connections beside the application's pool (SQLite:
 * one), and reads the database's clock only. On PostgreSQL a third one listens (`LISTEN`) for releases that somebody waits
 * for; behind a pooler in transaction mode that stays silent, and `pollMs` has to be set. Elsewhere those who wait ask.
 *
 * Needs `GRANT SELECT, INSERT, UPDATE` on that one table, `DELETE` too with `reapIdleAfterMs`, and no DDL unless
 * `synchronize` is set. `fenced()` needs `SELECT, INSERT, UPDATE` on its table, as the application's user.
 * @throws LockConfigurationError
 */
export function leaseBackend(
  dataSource: DataSource | { readonly options: DataSourceOptions },
  options: LeaseBackendOptions = {},
): LockBackend {
  const { tableName = DEFAULT_LOCK_TABLE, synchronize = false } = options;
  assertTableName('tableName', tableName);
  const { connectTimeoutMs = 2_000, statementTimeoutMs = 1_000, reapIdleAfterMs = Infinity } = options;
  assertAboveZero('connectTimeoutMs', connectTimeoutMs);
  assertAboveZero('statementTimeoutMs', statementTimeoutMs);
  assertAboveZero('reapIdleAfterMs', reapIdleAfterMs);

  const dialect = dialectOf(dataSource.options.type);
  dialect.connection(dataSource.options, new Sockets(() => undefined));
  const store = storeOf(tableName, reapIdleAfterMs, {
    options: dataSource.options,
    dialect,
    connectTimeoutMs,
    statementTimeoutMs,
    onOpen: (query) => checkLockTable(query, dialect, tableName, { create: synchronize }),
  });
  return new PollingBackend(store, options);
}

function storeOf(table: string, reapIdleAfterMs: number, settings: ConnectionSettings): LeaseStore {
  const { dialect, options } = settings;
  const connections = new OwnConnections(settings);
  const reaper = Number.isFinite(reapIdleAfterMs)
    ? new Reaper(connections.query, dialect, table, reapIdleAfterMs)
    : undefined;
  const store = new SqlLeaseStore(`typeorm:${options.type}`, table, dialect, connections, reaper);
  if (!dialect.wakeUps) return store;
  const channel = new ReleaseChannel(settings, dialect.wakeUps, table);
  return new AnnouncedLeaseStore(store, table, dialect.wakeUps, connections, channel);
}

function assertAboveZero(option: string, value: number): void {
  if (!(value > 0)) throw new LockConfigurationError(`${option} must be above 0; it was ${value}`, option);
}
