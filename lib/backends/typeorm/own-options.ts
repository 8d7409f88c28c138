import type { DataSourceOptions } from 'typeorm';
import { LockConfigurationError } from '../../core/index.js';
import { type Sockets, streamIn } from '../sql/connections/sockets.js';
import { answersAsExpected } from '../sql/mysql/driver.js';
import { heard } from '../sql/postgres/driver.js';
import { BUSY_TIMEOUT_MS, isInMemory } from '../sql/sqlite/driver.js';

type Of<T extends DataSourceOptions['type']> = Extract<DataSourceOptions, { readonly type: T }>;

/**
 * Returns the application's options, changed to one connection of the locks, to the server that takes writes.
 * @throws LockConfigurationError for options that can never work
 */
export function ownOptions(options: DataSourceOptions, sockets: Sockets): DataSourceOptions {
  if (options.type === 'postgres') return onPostgres(options, sockets);
  if (options.type === 'mysql' || options.type === 'mariadb') return onMysql(options, sockets);
  return options.type === 'better-sqlite3' ? onSqlite(options) : options;
}

const STREAM = { name: 'extra.stream of the data source', option: 'dataSource' } as const;

/** Options of `pg`'s pool: no number of uses, age or pause ends a connection of the locks. */
const KEEP_OPEN = { maxUses: Infinity, maxLifetimeSeconds: 0, idleTimeoutMillis: 0 };

function onPostgres({ replication, extra, ...rest }: Of<'postgres'>, sockets: Sockets): DataSourceOptions {
  const given = streamIn(extra);
  const stream = given ? (config: unknown) => sockets.adopt(given(config), STREAM) : () => sockets.create();
  const ours: object = { ...heard(extra), ...KEEP_OPEN, min: 0, max: 1, stream };
  const master = { ...rest, ...replication?.master };
  // TypeORM takes `pg-native` where that is installed, which makes its own sockets.
  return { ...master, nativeDriver: false, poolSize: 1, poolErrorHandler: () => undefined, extra: ours };
}

/** Options of the pool of `mysql2`: no pause ends a connection of the locks. */
const POOL_OF_ONE = { connectionLimit: 1, maxIdle: 1, waitForConnections: true };

function onMysql({ replication, extra, ...rest }: Of<'mysql' | 'mariadb'>, sockets: Sockets): DataSourceOptions {
  const ours = { poolSize: 1, extra: { ...extra, ...POOL_OF_ONE, ...answersAsExpected(sockets, extra, STREAM) } };
  // TypeORM 0.3 takes the package `mysql` where that is installed too, which makes its own sockets.
  return Object.assign({ ...rest, ...replication?.master, ...ours }, { connectorPackage: 'mysql2' });
}

function onSqlite(options: Of<'better-sqlite3'>): DataSourceOptions {
  if (isInMemory(options.database)) {
    throw new LockConfigurationError(
      'a SQLite database in memory belongs to one connection, and locks need one of their own: use a file, or memory()',
      'dataSource',
    );
  }
  if (options.readonly === true) {
    throw new LockConfigurationError('a SQLite database that is opened readonly takes no locks', 'dataSource');
  }
  return { ...options, enableWAL: true, timeout: BUSY_TIMEOUT_MS };
}
