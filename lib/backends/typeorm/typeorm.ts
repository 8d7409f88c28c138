import type { DataSource, DataSourceOptions } from 'typeorm';
import { type LockBackend, LockConfigurationError, PollingBackend, type PollingOptions } from '../../core/index.js';
import { OwnConnection } from './own-connection.js';
import { assertTableName, dialectOf, type Query, type SqlDialect } from './sql-dialect.js';
import { SqlLeaseStore } from './sql-lease-store.js';

export const DEFAULT_LOCK_TABLE = 'distributed_lock';
export const DEFAULT_FENCE_TABLE = 'distributed_lock_fence';

export interface TypeOrmOptions extends PollingOptions {
  /** The application's data source. Only its options are used: the locks have a connection of their own, closed by `close()`. */
  dataSource: DataSource | { readonly options: DataSourceOptions };
  /** `lease`: a row with an expiry, renewed while held. @default 'lease' */
  strategy?: 'lease';
  /** @default 'distributed_lock' */
  tableName?: string;
  /** Creates the table where it is missing. Else run the migration `CreateDistributedLock1760000000000`. @default false */
  synchronize?: boolean;
  /** How long one statement may wait for a busy database. @default 1_000 */
  statementTimeoutMs?: number;
}

const OPTIONS: ReadonlySet<string> = new Set([
  'dataSource',
  'strategy',
  'tableName',
  'synchronize',
  'statementTimeoutMs',
  'pollMs',
  'patienceMs',
]);

/**
 * Locks in a table of the application's own database: SQLite (`better-sqlite3`, or `libsql` as its driver).
 * Needs the right to SELECT, INSERT and UPDATE that one table; no DDL unless `synchronize` is set.
 * @throws LockConfigurationError
 */
export function typeorm(options: TypeOrmOptions): LockBackend {
  const { dataSource, strategy = 'lease', tableName = DEFAULT_LOCK_TABLE, synchronize = false } = options;
  for (const name of Object.keys(options)) {
    if (!OPTIONS.has(name)) {
      throw new LockConfigurationError(`${name} is no option of typeorm(); there are ${[...OPTIONS].join(', ')}`, name);
    }
  }
  if (dataSource?.options?.type === undefined) {
    throw new LockConfigurationError('dataSource must be a TypeORM DataSource', 'dataSource');
  }
  if (strategy !== 'lease') {
    throw new LockConfigurationError(`strategy must be 'lease'; it was ${JSON.stringify(strategy)}`, 'strategy');
  }
  assertTableName('tableName', tableName);
  const { statementTimeoutMs = 1_000 } = options;
  if (!(statementTimeoutMs > 0)) {
    throw new LockConfigurationError(
      `statementTimeoutMs must be above 0; it was ${statementTimeoutMs}`,
      'statementTimeoutMs',
    );
  }
  const dialect = dialectOf(dataSource.options.type);
  dialect.connection(dataSource.options);
  const connection = new OwnConnection(dataSource.options, dialect, statementTimeoutMs, (query) =>
    synchronize ? create(query, dialect, tableName) : assertTable(query, tableName),
  );
  return new PollingBackend(
    new SqlLeaseStore(`typeorm:${dataSource.options.type}`, tableName, dialect, connection),
    options,
  );
}

async function create(query: Query, dialect: SqlDialect, table: string): Promise<void> {
  await query(dialect.createLockTable(table), []);
}

async function assertTable(query: Query, table: string): Promise<void> {
  try {
    await query(`select lock_key, owner, token, expires_at, acquired_at, metadata from ${table} where 1 = 0`, []);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new LockConfigurationError(
      `the table ${table} cannot be used for locks (${reason}). Run the migration CreateDistributedLock1760000000000 ` +
        'of nestjs-distributed-lock/typeorm, or set synchronize: true',
      'tableName',
    );
  }
}
