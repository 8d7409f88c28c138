import type { DataSourceOptions } from 'typeorm';
import { LockConfigurationError } from '../../core/index.js';
import type { TableHome } from '../sql/connections/sql-database.js';
import type { SqlDialect } from '../sql/dialect/sql-dialect.js';
import { mysqlDialect } from '../sql/mysql/dialect.js';
import { postgresDialect } from '../sql/postgres/dialect.js';
import { sqliteDialect } from '../sql/sqlite/dialect.js';

/** By the type of the data source. */
const DATABASES: Readonly<Record<string, SqlDialect>> = {
  'better-sqlite3': sqliteDialect,
  postgres: postgresDialect,
  mysql: mysqlDialect,
  mariadb: mysqlDialect,
};

/** @throws LockConfigurationError for a database that is not known */
export function tableHomeOf(options: DataSourceOptions): TableHome {
  const { type } = options;
  const dialect = Object.hasOwn(DATABASES, type) ? DATABASES[type] : undefined;
  if (!dialect) {
    throw new LockConfigurationError(
      `typeorm() has no dialect for data sources of type "${type}"; it has ${Object.keys(DATABASES).join(', ')}`,
      'dataSource',
    );
  }
  const schema = options.type === 'postgres' && options.schema !== '' ? options.schema : undefined;
  const howToCreate = 'Run the migration CreateDistributedLock1760000000000 of nestjs-distributed-lock/typeorm';
  return { dialect, schema, howToCreate, synchronizing: 'typeorm({ dataSource, synchronize: true })' };
}
