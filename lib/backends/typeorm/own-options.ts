import type { DataSourceOptions } from 'typeorm';
import { LockConfigurationError } from '../../core/index.js';
import { type Sockets, getStreamFactory } from '../sql/connections/sockets.js';
import { createDriverOptions } from '../sql/mysql/driver.js';
import { addErrorListener } from '../sql/postgres/driver.js';
import { BUSY_TIMEOUT_MS, isInMemory } from '../sql/sqlite/driver.js';

type OptionsOf<T extends DataSourceOptions['type']> = Extract<DataSourceOptions, { readonly type: T }>;

/**
 * Returns the application's options, changed so that they open one connection, to the server that takes writes.
 * @throws LockConfigurationError for options that can never work
 */
export function createSingleConnectionOptions(options: DataSourceOptions, sockets: Sockets): DataSourceOptions {
  if (options.type === 'postgres') return createPostgresOptions(options, sockets);
  if (options.type === 'mysql' || options.type === 'mariadb') return createMysqlOptions(options, sockets);
  return options.type === 'better-sqlite3' ? createSqliteOptions(options) : options;
}

const STREAM_SETTING = { name: 'extra.stream of the data source', option: 'dataSource' } as const;

/** Options by which the pool of `pg` never closes its connection by itself. */
const KEEP_OPEN_OPTIONS = { maxUses: Infinity, maxLifetimeSeconds: 0, idleTimeoutMillis: 0 };

function createPostgresOptions(
  { replication, extra, ...rest }: OptionsOf<'postgres'>,
  sockets: Sockets,
): DataSourceOptions {
  const streamFactory = getStreamFactory(extra);
  const stream = streamFactory
    ? (config: unknown) => sockets.watchStream(streamFactory(config), STREAM_SETTING)
    : () => sockets.create();
  const poolOptions: object = { ...addErrorListener(extra), ...KEEP_OPEN_OPTIONS, min: 0, max: 1, stream };
  const master = { ...rest, ...replication?.master };
  // TypeORM takes `pg-native` where that is installed, which makes its own sockets.
  return { ...master, nativeDriver: false, poolSize: 1, poolErrorHandler: () => undefined, extra: poolOptions };
}

/** With `maxIdle` equal to `connectionLimit`, the driver closes no idle connection. */
const ONE_CONNECTION_POOL = { connectionLimit: 1, maxIdle: 1, waitForConnections: true };

function createMysqlOptions(
  { replication, extra, ...rest }: OptionsOf<'mysql' | 'mariadb'>,
  sockets: Sockets,
): DataSourceOptions {
  const oneConnectionOptions = {
    poolSize: 1,
    extra: { ...extra, ...ONE_CONNECTION_POOL, ...createDriverOptions(sockets, extra, STREAM_SETTING) },
  };
  // TypeORM 0.3 takes the package `mysql` where that is installed too, which makes its own sockets.
  return Object.assign({ ...rest, ...replication?.master, ...oneConnectionOptions }, { connectorPackage: 'mysql2' });
}

function createSqliteOptions(options: OptionsOf<'better-sqlite3'>): DataSourceOptions {
  if (isInMemory(options.database)) {
    throw new LockConfigurationError(
      'a SQLite database in memory belongs to one connection, and locks need one of their own: use a file, or memory()',
      'dataSource',
    );
  }
  if (options.readonly === true) {
    throw new LockConfigurationError('a SQLite database that is opened readonly takes no locks', 'dataSource');
  }
  // The driver shows all statements to `verbose`, and those of the locks have keys and owner ids, which are secrets.
  const { verbose: _verbose, ...rest } = options;
  return { ...rest, enableWAL: true, timeout: BUSY_TIMEOUT_MS };
}
