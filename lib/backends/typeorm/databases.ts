import { LockConfigurationError } from '../../core/index.js';
import type { RowLocks } from './dialect/row-locks.js';
import type { SessionLocks } from './dialect/session-locks.js';
import type { SqlDialect } from './dialect/sql-dialect.js';
import { mysql } from './mysql/dialect.js';
import { postgres } from './postgres/dialect.js';
import { sqlite } from './sqlite/dialect.js';

/** By the type of the data source. */
const DATABASES: Readonly<Record<string, SqlDialect>> = {
  'better-sqlite3': sqlite,
  postgres,
  mysql,
  mariadb: mysql,
};

/** @throws LockConfigurationError for a database that is not known */
export function dialectOf(type: string): SqlDialect {
  const dialect = Object.hasOwn(DATABASES, type) ? DATABASES[type] : undefined;
  if (dialect) return dialect;
  throw new LockConfigurationError(
    `typeorm() has no dialect for data sources of type "${type}"; it has ${Object.keys(DATABASES).join(', ')}`,
    'dataSource',
  );
}

/** @throws LockConfigurationError for a database that locks no single rows */
export function rowLocksOf(type: string): RowLocks {
  return dialectOf(type).rowLocks ?? refuse(type, 'row', 'locks no single rows');
}

/** @throws LockConfigurationError for a database without such locks */
export function sessionLocksOf(type: string): SessionLocks {
  return dialectOf(type).sessionLocks ?? refuse(type, 'session', 'has no locks of sessions');
}

function refuse(type: string, strategy: string, why: string): never {
  throw new LockConfigurationError(
    `strategy '${strategy}' needs postgres, mysql, mariadb; a data source of type "${type}" ${why}`,
    'strategy',
  );
}
