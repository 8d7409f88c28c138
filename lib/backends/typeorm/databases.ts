import { LockConfigurationError } from '../../core/index.js';
import type { ExistingTableDialect } from './dialect/existing-table-dialect.js';
import type { RowLocks } from './dialect/row-locks.js';
import type { SessionLocks } from './dialect/session-locks.js';
import type { SqlDialect } from './dialect/sql-dialect.js';
import { mysql } from './mysql/dialect.js';
import { mysqlExistingTable } from './mysql/existing-table.js';
import { mysqlRowLocks } from './mysql/row-locks.js';
import { mysqlSessionLocks } from './mysql/session-locks.js';
import { postgres } from './postgres/dialect.js';
import { postgresExistingTable } from './postgres/existing-table.js';
import { postgresRowLocks } from './postgres/row-locks.js';
import { postgresSessionLocks } from './postgres/session-locks.js';
import { sqlite } from './sqlite/dialect.js';
import { sqliteExistingTable } from './sqlite/existing-table.js';

interface Database {
  readonly dialect: SqlDialect;
  readonly existingTable: ExistingTableDialect;
  readonly rows?: RowLocks;
  readonly sessions?: SessionLocks;
}

const MYSQL: Database = {
  dialect: mysql,
  existingTable: mysqlExistingTable,
  rows: mysqlRowLocks,
  sessions: mysqlSessionLocks,
};

/** By the type of the data source. */
const DATABASES: Readonly<Record<string, Database>> = {
  'better-sqlite3': { dialect: sqlite, existingTable: sqliteExistingTable },
  postgres: {
    dialect: postgres,
    existingTable: postgresExistingTable,
    rows: postgresRowLocks,
    sessions: postgresSessionLocks,
  },
  mysql: MYSQL,
  mariadb: MYSQL,
};

/** @throws LockConfigurationError for a database that is not known */
export function dialectOf(type: string): SqlDialect {
  return databaseOf(type).dialect;
}

/** @throws LockConfigurationError for a database that is not known */
export function existingTableDialectOf(type: string): ExistingTableDialect {
  return databaseOf(type).existingTable;
}

/** @throws LockConfigurationError for a database that locks no single rows */
export function rowLocksOf(type: string): RowLocks {
  return databaseOf(type).rows ?? refuse(type, 'row', 'locks no single rows');
}

/** @throws LockConfigurationError for a database without such locks */
export function sessionLocksOf(type: string): SessionLocks {
  return databaseOf(type).sessions ?? refuse(type, 'session', 'has no locks of sessions');
}

function databaseOf(type: string): Database {
  const database = Object.hasOwn(DATABASES, type) ? DATABASES[type] : undefined;
  if (database) return database;
  throw new LockConfigurationError(
    `typeorm() has no dialect for data sources of type "${type}"; it has ${Object.keys(DATABASES).join(', ')}`,
    'dataSource',
  );
}

function refuse(type: string, strategy: string, why: string): never {
  throw new LockConfigurationError(
    `strategy '${strategy}' needs postgres, mysql, mariadb; a data source of type "${type}" ${why}`,
    'strategy',
  );
}
