import { type BackendFactory, LockBackend, LockConfigurationError, type PollingOptions } from '../../../core/index.js';
import type { Query } from '../connections/query.js';
import type { SqlDatabase } from '../connections/sql-database.js';
import type { ExistingTableColumns } from '../dialect/existing-table-types.js';
import { ownColumns } from '../dialect/lease-statements.js';
import type { WaitingLine } from '../dialect/sql-dialect.js';
import { checkExistingTable } from '../existing-table/check-existing-table.js';
import { existingTable, existingTableStatements } from '../existing-table/existing-table.js';
import type { CommonOptions } from '../options.js';
import { lockTable } from '../tables/lock-table.js';
import { QueuedLeaseStore } from './queued-lease-store.js';
import { type LeaseTable, SqlLeaseStore } from './sql-lease-store.js';

export interface LeaseBackendOptions extends CommonOptions, Pick<PollingOptions, 'pollMs'> {
  /**
   * The locks are in a table that was there before, one row for each key that is held, and `tableName` is its name.
   * Programs that only insert and delete rows there may go on: we hold what they hold, and they what we do.
   * `addLockColumns`, or `synchronize`, adds the columns that such a table lacks.
   */
  columns?: ExistingTableColumns;
  /**
   * With `columns`: a row without an expiry, as older programs make them, is over so long after its `updatedAt`. Choose
   * longer than anything that such a program does. An `updatedAt` without a time zone is read in that of our
   * connections. Where the older program sets another one, add the difference, and an hour for the change of summer
   * time.
   * @default Infinity: never
   */
  abandonedAfterMs?: number;
  /**
   * How long to wait for one of our connections to be free, and for a new one to be ready. @default 2_000, or the
   * data source's own time-out for connections where that is longer
   */
  connectTimeoutMs?: number;
  /**
   * Deletes rows that were free for longer, in milliseconds. Without it every key ever used keeps its row. A deleted
   * key's token goes on growing by the database's clock: choose more than that clock could ever step back. @default
   * Infinity
   */
  reapIdleAfterMs?: number;
}

/**
 * Locks in a table of the application's own database. The README says what they need and promise.
 *
 * A lease ends by the wall clock of the server that answers. After a failover to a server whose clock is ahead, it ends
 * early. A server that lags behind forgets it, and there only the fencing token protects.
 * @throws LockConfigurationError
 */
export function leaseBackend(database: SqlDatabase, options: LeaseBackendOptions = {}): BackendFactory {
  const { requestTimeoutMs = 1_000, reapIdleAfterMs = Infinity, columns } = options;
  const { connectTimeoutMs = database.connectTimeoutMs } = options;
  const rows = columns ? existingRows(database, { ...options, columns }) : ownRows(database, options);
  const times = { connectTimeoutMs, connectTimeoutOption: 'connectTimeoutMs' as const, requestTimeoutMs };
  const settings = { database, ...times, onOpen: rows.onOpen };
  const { line } = rows;
  const table = { ...rows, reapIdleAfterMs };
  const open = () => (line ? new QueuedLeaseStore(table, line, settings) : new SqlLeaseStore(table, settings));
  return () => new LockBackend(open(), options);
}

interface Rows extends Omit<LeaseTable, 'reapIdleAfterMs'> {
  /** Looks at the table, on each new connection. */
  readonly onOpen: (query: Query) => Promise<void>;
  readonly line?: WaitingLine | undefined;
}

function ownRows(database: SqlDatabase, options: LeaseBackendOptions): Rows {
  const { dialect } = database;
  const { table, check } = lockTable(database, options);
  if (options.abandonedAfterMs !== undefined) {
    throw new LockConfigurationError('abandonedAfterMs is for a table of yours: give its columns', 'abandonedAfterMs');
  }
  const claims = dialect.claims(table);
  return { table, statements: dialect.leases(ownColumns(table)), claims, onOpen: check, line: dialect.line };
}

function existingRows(database: SqlDatabase, options: LeaseBackendOptions & { columns: ExistingTableColumns }): Rows {
  const { dialect } = database;
  const table = existingTable(database, options);
  const onOpen = (query: Query): Promise<void> =>
    checkExistingTable(query, dialect, table, options.synchronize === true);
  return { table: table.columns.rows, statements: existingTableStatements(dialect, table), onOpen };
}
