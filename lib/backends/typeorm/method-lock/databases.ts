import { LockConfigurationError } from '../../../core/index.js';
import type { MethodLockDialect } from './method-lock-dialect.js';
import { mysqlMethodLock } from './mysql-method-lock.js';
import { postgresMethodLock } from './postgres-method-lock.js';
import { sqliteMethodLock } from './sqlite-method-lock.js';

const DIALECTS: ReadonlyMap<string, MethodLockDialect> = new Map([
  ['better-sqlite3', sqliteMethodLock],
  ['postgres', postgresMethodLock],
  ['mysql', mysqlMethodLock],
  ['mariadb', mysqlMethodLock],
]);

/** @throws LockConfigurationError for a database that has none */
export function methodLockDialectOf(type: string): MethodLockDialect {
  const dialect = DIALECTS.get(type);
  if (dialect) return dialect;
  throw new LockConfigurationError(`columns are not known to data sources of type "${type}"`, 'dataSource');
}
