import { LockConfigurationError } from '../../../core/index.js';
import { KEY_ROWS } from '../row/databases.js';
import { mysqlSessionLocks } from './mysql-session-locks.js';
import { postgresSessionLocks } from './postgres-session-locks.js';
import type { SessionDialect } from './session-dialect.js';

const DIALECTS: ReadonlyMap<string, SessionDialect> = new Map([
  ['postgres', { locks: postgresSessionLocks, row: KEY_ROWS.postgres }],
  ['mysql', { locks: mysqlSessionLocks, row: KEY_ROWS.mysql }],
  ['mariadb', { locks: mysqlSessionLocks, row: KEY_ROWS.mariadb }],
]);

/** @throws LockConfigurationError for a database without such locks */
export function sessionDialectOf(type: string): SessionDialect {
  const dialect = DIALECTS.get(type);
  if (dialect) return dialect;
  throw new LockConfigurationError(
    `strategy 'session' needs ${[...DIALECTS.keys()].join(', ')}; a data source of type "${type}" has no locks of sessions`,
    'strategy',
  );
}
