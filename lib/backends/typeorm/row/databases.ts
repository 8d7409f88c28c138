import { LockConfigurationError } from '../../../core/index.js';
import type { KeyRow } from './key-row.js';
import { mysqlKeyRow } from './mysql-key-row.js';
import { mysqlRowLocks } from './mysql-row-locks.js';
import { postgresKeyRow } from './postgres-key-row.js';
import { postgresRowLocks } from './postgres-row-locks.js';
import type { RowLocks } from './row-locks.js';

export const KEY_ROWS = { postgres: postgresKeyRow, mysql: mysqlKeyRow, mariadb: mysqlKeyRow } satisfies Record<
  string,
  KeyRow
>;

const DIALECTS: ReadonlyMap<string, RowLocks> = new Map([
  ['postgres', postgresRowLocks],
  ['mysql', mysqlRowLocks],
  ['mariadb', mysqlRowLocks],
]);

/** @throws LockConfigurationError for a database that locks no single rows */
export function rowLocksOf(type: string): RowLocks {
  const locks = DIALECTS.get(type);
  if (locks) return locks;
  throw new LockConfigurationError(
    `strategy 'row' needs ${[...DIALECTS.keys()].join(', ')}; a data source of type "${type}" locks no single rows`,
    'strategy',
  );
}
