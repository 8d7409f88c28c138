import { LockConfigurationError, shownOption } from '../../../core/index.js';
import { mysqlDialect } from '../mysql/dialect.js';
import { postgresDialect } from '../postgres/dialect.js';
import { sqliteDialect } from '../sqlite/dialect.js';
import { createTable, DEFAULT_FENCE_TABLE, DEFAULT_LOCK_TABLE } from './lock-table.js';
import { quotedTable } from './table-name.js';

const DIALECTS = { postgres: postgresDialect, mysql: mysqlDialect, sqlite: sqliteDialect };

/** Names of the tables. */
export interface TableNames {
  /** @default 'distributed_lock' */
  lock?: string;
  /** @default 'distributed_lock_fence' */
  fence?: string;
}

/**
 * Returns the statements that create the tables of the locks and of the fences, for any migration tool, and on PostgreSQL
 * their schema. A table that is there is left alone.
 * @throws LockConfigurationError for an unknown database, and for what is no table's name
 */
export function tableStatements(
  database: keyof typeof DIALECTS,
  { lock = DEFAULT_LOCK_TABLE, fence = DEFAULT_FENCE_TABLE }: TableNames = {},
): string[] {
  const dialect = Object.hasOwn(DIALECTS, database) ? DIALECTS[database] : undefined;
  if (!dialect) {
    const known = Object.keys(DIALECTS).join(', ');
    throw new LockConfigurationError(`database must be one of ${known}; it was ${shownOption(database)}`, 'database');
  }
  const home = { dialect, schema: undefined };
  const schemas = new Set(
    [lock, fence].filter((name) => name.includes('.')).map((name) => name.split('.', 1)[0] ?? ''),
  );
  return [
    ...(database === 'postgres'
      ? Array.from(schemas, (name) => `create schema if not exists ${dialect.quote(name)}`)
      : []),
    createTable(dialect, quotedTable(home, lock), 'lock'),
    createTable(dialect, quotedTable(home, fence), 'fence'),
  ];
}
