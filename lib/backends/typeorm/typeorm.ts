import type { DataSource, DataSourceOptions } from 'typeorm';
import { type BackendFactory, LockConfigurationError } from '../../core/index.js';
import { createSqlBackend, type StrategyOptions } from '../sql/strategies.js';
import { createDataSourceDatabase } from './data-source-database.js';

interface TypeOrmSource {
  /** The application's data source, for its options and subscribers: the locks have connections of their own. */
  dataSource: DataSource | { readonly options: DataSourceOptions };
}

/** Each strategy describes its own options. All processes must use the same strategy. @interface */
export type TypeOrmOptions = TypeOrmSource & StrategyOptions;

/**
 * Locks in the application's own database. `lease`: a row with an expiry, which is renewed while the lock is held.
 * `row`: `SELECT … FOR UPDATE` in a transaction that the holder writes through. `session`: advisory locks of a
 * connection. PostgreSQL, MySQL and MariaDB have all strategies; SQLite has `lease` only.
 * @throws LockConfigurationError
 */
export function typeorm(options: TypeOrmOptions): BackendFactory {
  const { dataSource } = options;
  if (dataSource?.options?.type === undefined) {
    throw new LockConfigurationError('dataSource must be a TypeORM DataSource', 'dataSource');
  }
  const source = 'subscribers' in dataSource ? dataSource : undefined;
  return createSqlBackend(createDataSourceDatabase(dataSource.options, source), options, ['dataSource']);
}
