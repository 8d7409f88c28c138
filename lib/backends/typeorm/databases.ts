import { LockConfigurationError } from '../../core/index.js';
import { mysql } from './mysql-dialect.js';
import { postgres } from './postgres-dialect.js';
import type { SqlDialect } from './sql-dialect.js';
import { sqlite } from './sqlite-dialect.js';

const DIALECTS: ReadonlyMap<string, SqlDialect> = new Map([
  ['better-sqlite3', sqlite],
  ['postgres', postgres],
  ['mysql', mysql],
  ['mariadb', mysql],
]);

/** @throws LockConfigurationError for a database that has no dialect */
export function dialectOf(type: string): SqlDialect {
  const dialect = DIALECTS.get(type);
  if (dialect) return dialect;
  throw new LockConfigurationError(
    `typeorm() has no dialect for data sources of type "${type}"; it has ${[...DIALECTS.keys()].join(', ')}`,
    'dataSource',
  );
}
