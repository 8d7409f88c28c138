import type { DataSourceOptions } from 'typeorm';
import { LockConfigurationError } from '../../core/index.js';
import type { TableContext } from '../sql/connections/sql-database.js';
import type { SqlDialect } from '../sql/dialect/sql-dialect.js';
import { mysqlDialect } from '../sql/mysql/dialect.js';
import { postgresDialect } from '../sql/postgres/dialect.js';
import { sqliteDialect } from '../sql/sqlite/dialect.js';

const DIALECTS_BY_TYPE: Readonly<Record<string, SqlDialect>> = {
  'better-sqlite3': sqliteDialect,
  postgres: postgresDialect,
  mysql: mysqlDialect,
  mariadb: mysqlDialect,
};

/** @throws LockConfigurationError for an unknown type of data source */
export function getTableContext(options: DataSourceOptions): TableContext {
  const { type } = options;
  const dialect = Object.hasOwn(DIALECTS_BY_TYPE, type) ? DIALECTS_BY_TYPE[type] : undefined;
  if (!dialect) {
    throw new LockConfigurationError(
      `typeorm() has no dialect for data sources of type "${type}"; it has ${Object.keys(DIALECTS_BY_TYPE).join(', ')}`,
      'dataSource',
    );
  }
  const schema = options.type === 'postgres' && options.schema !== '' ? options.schema : undefined;
  const creationAdvice = 'Run the migration CreateDistributedLock1760000000000 of nestjs-distributed-lock/typeorm';
  return { dialect, schema, creationAdvice, synchronizeExample: 'typeorm({ dataSource, synchronize: true })' };
}
