import { type BackendFactory, LockBackend, LockConfigurationError, type PollingOptions } from '../../../core/index.js';
import type { Query } from '../connections/query.js';
import type { SqlDatabase } from '../connections/sql-database.js';
import type { ExistingTableColumns } from '../dialect/existing-table-types.js';
import { createOwnColumns } from '../dialect/lease-statements.js';
import type { WaitingLine } from '../dialect/sql-dialect.js';
import { checkExistingTable } from '../existing-table/check-existing-table.js';
import { resolveExistingTable, createExistingTableStatements } from '../existing-table/existing-table.js';
import type { CommonOptions } from '../options.js';
import { resolveLockTable } from '../tables/lock-table.js';
import { QueuedLeaseStore } from './queued-lease-store.js';
import { type LeaseTable, SqlLeaseStore } from './sql-lease-store.js';

export interface LeaseBackendOptions extends CommonOptions, Pick<PollingOptions, 'pollMs'> {
  /**
   * Columns of an existing table of locks, with one row for each key that is held. `tableName` is its name. Older
   * programs that insert and delete rows there may go on: they and this library exclude each other. `addLockColumns`,
   * or `synchronize`, adds the columns that such a table lacks.
   */
  columns?: ExistingTableColumns;
  /**
   * With `columns`: milliseconds after `updatedAt` at which a row without an expiry, as older programs write it, counts
   * as free. Choose longer than any hold of such a program. An `updatedAt` without a time zone is read in the time zone
   * of the locks' connections. Where the older program uses another time zone, add the difference, and an hour for
   * summer time.
   * @default Infinity: never
   */
  abandonedAfterMs?: number;
  /**
   * Maximum milliseconds to wait for a free connection of the locks, and for a new one to be ready.
   * @default 2_000, or the data source's own time-out for connections where that is longer
   */
  connectTimeoutMs?: number;
  /**
   * Milliseconds after which a free row is deleted. Without this option, every key ever used keeps its row. The next
   * token of a deleted key follows the database's clock: choose more than that clock could ever step back.
   * @default Infinity
   */
  reapIdleAfterMs?: number;
}

/**
 * Returns a factory of backends whose leases end by the wall clock of the server that answers. A lease ends early after
 * a failover to a server whose clock is ahead. Leases may be lost after a failover to a replica that lacks the latest
 * writes. Only the fencing token protects in that case.
 * @throws LockConfigurationError
 */
export function createLeaseBackend(database: SqlDatabase, options: LeaseBackendOptions = {}): BackendFactory {
  const { requestTimeoutMs = 1_000, reapIdleAfterMs = Infinity, columns } = options;
  const { connectTimeoutMs = database.connectTimeoutMs } = options;
  const tableSetup = columns
    ? createExistingTableSetup(database, { ...options, columns })
    : createOwnTableSetup(database, options);
  const timeouts = { connectTimeoutMs, connectTimeoutOption: 'connectTimeoutMs' as const, requestTimeoutMs };
  const settings = { database, ...timeouts, onOpen: tableSetup.onOpen };
  const { waitingLine } = tableSetup;
  const leaseTable = { ...tableSetup, reapIdleAfterMs };
  const createStore = () =>
    waitingLine ? new QueuedLeaseStore(leaseTable, waitingLine, settings) : new SqlLeaseStore(leaseTable, settings);
  return () => new LockBackend(createStore(), options);
}

interface TableSetup extends Omit<LeaseTable, 'reapIdleAfterMs'> {
  readonly onOpen: (query: Query) => Promise<void>;
  readonly waitingLine?: WaitingLine | undefined;
}

function createOwnTableSetup(database: SqlDatabase, options: LeaseBackendOptions): TableSetup {
  const { dialect } = database;
  const { table, ensureTableUsable } = resolveLockTable(database, options);
  if (options.abandonedAfterMs !== undefined) {
    throw new LockConfigurationError('abandonedAfterMs is for a table of yours: give its columns', 'abandonedAfterMs');
  }
  const claims = dialect.claims(table);
  return {
    table,
    statements: dialect.leases(createOwnColumns(table)),
    claims,
    onOpen: ensureTableUsable,
    waitingLine: dialect.waitingLine,
  };
}

function createExistingTableSetup(
  database: SqlDatabase,
  options: LeaseBackendOptions & { columns: ExistingTableColumns },
): TableSetup {
  const { dialect } = database;
  const table = resolveExistingTable(database, options);
  const onOpen = (query: Query): Promise<void> =>
    checkExistingTable(query, dialect, table, options.synchronize === true);
  return { table: table.columns.table, statements: createExistingTableStatements(dialect, table), onOpen };
}
