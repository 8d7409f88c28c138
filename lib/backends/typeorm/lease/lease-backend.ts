import type { DataSource, DataSourceOptions } from 'typeorm';
import {
  type LeaseStore,
  type BackendFactory,
  LockConfigurationError,
  LockBackend,
  type PollingOptions,
  WakeUps,
} from '../../../core/index.js';
import type { CommonOptions } from '../options.js';
import { NotificationListener } from './notification-listener.js';
import { checkLockTable, DEFAULT_LOCK_TABLE } from '../tables/lock-table.js';
import { checkExistingTable } from '../existing-table/check-existing-table.js';
import { existingTable, existingTableStatements } from '../existing-table/existing-table.js';
import type { ExistingTableColumns } from '../dialect/existing-table-dialect.js';
import type { ConnectionSettings } from '../connections/own-connection.js';
import { OwnConnections } from '../connections/own-connections.js';
import { QueuedLeaseStore } from './queued-lease-store.js';
import { Sockets } from '../connections/sockets.js';
import { dialectOf, existingTableDialectOf } from '../databases.js';
import type { LeaseStatements, Query, SqlDialect, WaitingLine } from '../dialect/sql-dialect.js';
import { type LeaseTable, SqlLeaseStore } from './sql-lease-store.js';
import { assertTableName, quotedTable } from '../tables/table-name.js';

export interface LeaseBackendOptions extends CommonOptions, Pick<PollingOptions, 'pollMs'> {
  /**
   * The locks are in a table that was there before, one row for each key that is held, and `tableName` is its name.
   * Programs that only insert and delete rows there may go on: we hold what they hold, and they what we do.
   * `addLockColumns`, or `synchronize`, adds the columns that such a table lacks.
   */
  columns?: ExistingTableColumns;
  /**
   * With `columns`: a row without an expiry, as older programs make them, is over so long after its `updatedAt`. Longer
   * than anything that such a program does. An `updatedAt` without a time zone is read in that of our connections:
   * where the older program sets another one, add the difference, and an hour for the change of summer time. @default
   * Infinity: never
   */
  abandonedAfterMs?: number;
  /** How long to wait for one of our connections to be free, and for a new one to be ready. @default 2_000 */
  connectTimeoutMs?: number;
  /**
   * Deletes rows that were free for longer, in milliseconds. Without it every key ever used keeps its row. A deleted
   * key's token goes on growing by the database's clock: choose more than that clock could ever step back. @default
   * Infinity
   */
  reapIdleAfterMs?: number;
}

/**
 * Locks in a table of the application's own database: PostgreSQL, MySQL, MariaDB, or SQLite (`better-sqlite3`, or
 * `libsql` as its driver). Each statement is a transaction of its own, on up to two connections beside the
 * application's pool (SQLite: one), and reads the database's clock only. On PostgreSQL a third one listens (`LISTEN`)
 * for releases that somebody waits for. Elsewhere, and behind a pooler such as PgBouncer, those who wait ask every 50
 * ms, or as `pollMs` says, and 5 ms later for each key that the process waits for, up to five seconds.
 *
 * Each process has these connections for itself: on PostgreSQL, 30 processes use 90 of the default 100. A connection
 * that was idle for half a minute is replaced, and a listening one is probed every three seconds: networks forget.
 *
 * A lease ends by the wall clock of the server that answers. After a failover to a server whose clock is ahead it ends
 * early, and one to a server that lags behind forgets it: there only the fencing token protects. The guarantee is
 * `durable` as long as the server flushes what it confirms, else `best-effort`; `health` names the setting.
 *
 * On PostgreSQL a transaction that stays open for long, such as `pg_dump`, slows down a key that is taken often: old
 * versions of its row stay until the end of that transaction. A release that somebody waits for is a `NOTIFY`, whose
 * commit takes a lock of the whole database. On SQLite the file is switched to WAL, for good and for all who use it.
 *
 * Needs `GRANT SELECT, INSERT, UPDATE` on that one table, `DELETE` too with `reapIdleAfterMs` or `columns`, and no DDL
 * unless `synchronize` is set. `fenced()` needs `SELECT, INSERT, UPDATE` on its table, as the application's user.
 * @throws LockConfigurationError
 */
export function leaseBackend(
  dataSource: DataSource | { readonly options: DataSourceOptions },
  options: LeaseBackendOptions = {},
): BackendFactory {
  const { connectTimeoutMs = 2_000, requestTimeoutMs = 1_000, reapIdleAfterMs = Infinity, columns } = options;
  const dialect = dialectOf(dataSource.options.type);
  // Refuses options that can never work.
  dialect.connection(dataSource.options, new Sockets(() => undefined));
  const rows = columns
    ? existingRows(dataSource.options, columns, options)
    : ownRows(dialect, dataSource.options, options);
  const settings = { options: dataSource.options, dialect, connectTimeoutMs, requestTimeoutMs, onOpen: rows.onOpen };
  return () => new LockBackend(storeOf(rows, reapIdleAfterMs, settings), options);
}

/** Where the leases are, and what is done to them. */
interface Rows {
  readonly table: string;
  readonly statements: LeaseStatements;
  /** Looks at the table, on each new connection. */
  readonly onOpen: (query: Query) => Promise<void>;
  readonly line?: WaitingLine | undefined;
}

function ownRows(dialect: SqlDialect, dataSource: DataSourceOptions, options: LeaseBackendOptions): Rows {
  const { tableName = DEFAULT_LOCK_TABLE, synchronize = false, abandonedAfterMs } = options;
  assertTableName('tableName', tableName);
  const table = quotedTable(dialect, dataSource, tableName);
  if (abandonedAfterMs !== undefined) {
    throw new LockConfigurationError('abandonedAfterMs is for a table of yours: give its columns', 'abandonedAfterMs');
  }
  const onOpen = (query: Query): Promise<void> => checkLockTable(query, dialect, table, { create: synchronize });
  return { table, statements: dialect, onOpen, line: dialect.line };
}

function existingRows(
  dataSource: DataSourceOptions,
  columns: ExistingTableColumns,
  options: LeaseBackendOptions,
): Rows {
  const { tableName, abandonedAfterMs = Infinity, synchronize = false } = options;
  const dialect = existingTableDialectOf(dataSource.type);
  const table = existingTable(dataSource, { tableName, columns, abandonedAfterMs });
  const database = dialectOf(dataSource.type);
  const onOpen = (query: Query): Promise<void> =>
    checkExistingTable(query, dialect, table, { create: synchronize, database });
  return { table: table.rows, statements: existingTableStatements(dialect, table), onOpen };
}

function storeOf({ table, statements, line }: Rows, reapIdleAfterMs: number, given: ConnectionSettings): LeaseStore {
  const onOpen = async (query: Query): Promise<void> => {
    await given.onOpen(query);
    store.onForgetful(await given.dialect.forgets?.(query));
  };
  const settings = { ...given, onOpen };
  const connections = new OwnConnections(settings);
  const rows = { name: `typeorm:${settings.options.type}`, table, statements, connections, reapIdleAfterMs };
  const store = line ? queued(rows, line, settings) : new SqlLeaseStore(rows);
  return store;
}

function queued(rows: LeaseTable, line: WaitingLine, settings: ConnectionSettings): SqlLeaseStore {
  const wakeUps = new WakeUps();
  return new QueuedLeaseStore(rows, line, new NotificationListener(settings, rows, line, wakeUps), wakeUps);
}
