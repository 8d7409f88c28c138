import { LockConfigurationError, shownOption } from '../../../core/index.js';
import { mysqlDialect } from '../mysql/dialect.js';
import { postgresDialect } from '../postgres/dialect.js';
import { sqliteDialect } from '../sqlite/dialect.js';
import { createTableSql, DEFAULT_FENCE_TABLE, DEFAULT_LOCK_TABLE } from './lock-table.js';
import { quoteTable } from './table-name.js';

const DIALECTS = { postgres: postgresDialect, mysql: mysqlDialect, sqlite: sqliteDialect };

/** Names of the tables. */
export interface TableNames {
  /** @default 'distributed_lock' */
  lock?: string;
  /** @default 'distributed_lock_fence' */
  fence?: string;
}

/**
 * Returns the statements that create the tables of the locks and of the fences, for any migration tool. On PostgreSQL
 * they also create the tables' schemas. Existing tables are left alone.
 * @throws LockConfigurationError for an unknown database, or an invalid table name
 */
export function tableStatements(
  database: keyof typeof DIALECTS,
  { lock = DEFAULT_LOCK_TABLE, fence = DEFAULT_FENCE_TABLE }: TableNames = {},
): string[] {
  const dialect = Object.hasOwn(DIALECTS, database) ? DIALECTS[database] : undefined;
  if (!dialect) {
    const knownDatabases = Object.keys(DIALECTS).join(', ');
    throw new LockConfigurationError(
      `database must be one of ${knownDatabases}; it was ${shownOption(database)}`,
      'database',
    );
  }
  const tableNaming = { dialect, schema: undefined };
  const schemas = new Set(
    [lock, fence].filter((name) => name.includes('.')).map((name) => name.split('.', 1)[0] ?? ''),
  );
  return [
    ...(database === 'postgres'
      ? Array.from(schemas, (name) => `create schema if not exists ${dialect.quote(name)}`)
      : []),
    createTableSql(dialect, quoteTable(tableNaming, lock), 'lock'),
    createTableSql(dialect, quoteTable(tableNaming, fence), 'fence'),
  ];
}
