import type { LockBackend } from 'nestjs-distributed-lock/core';
import type { RedisClientPackage } from 'nestjs-distributed-lock/redis';
import type { MemcachedOptions } from 'nestjs-distributed-lock/memcached';
import type { TypeOrmOptions } from 'nestjs-distributed-lock/typeorm';
import type { DataSourceOptions } from 'typeorm';

interface Patience {
  /** @default that of the backend */
  readonly requestTimeoutMs?: number;
}

/** The settings of each backend: plain data, so that a child process can have them, too. */
interface Connections {
  redis: {
    readonly mode: 'queue' | 'plain' | 'getset';
    readonly tracking?: 'auto' | 'off';
  } & RedisTopology &
    RedisClientKind &
    Patience;
  redlock: { readonly urls: readonly string[] } & Patience;
  memcached: Pick<MemcachedOptions, 'servers' | 'protocol' | 'requestTimeoutMs'>;
  zookeeper: {
    readonly connectString: string;
    readonly sessionTtlMs: number;
    readonly mode: 'sequential' | 'simple';
  } & Patience;
  etcd: { readonly endpoints: readonly string[]; readonly sessionTtlMs: number } & Patience;
  sqlite: { readonly database: string; readonly door?: Door };
  postgres: SqlDatabase;
  mariadb: SqlDatabase;
  mysql: SqlDatabase;
}

/** The same connection, on which no command is sent but what a lock needs. */
export function withoutTracking(to: Connection): Connection {
  return to.backend === 'redis' ? { ...to, tracking: 'off' } : to;
}

/** Which client library speaks to Redis. */
export interface RedisClientKind {
  /** Package that makes the connections. @default ioredis */
  readonly clientPackage?: RedisClientPackage;
  /** Package whose client is made here, and given to the backend for the server at `url`. */
  readonly given?: 'redis' | 'redis-5' | 'iovalkey';
}

/** Where Redis servers are, as `redis()` wants to know it. */
export type RedisTopology =
  | { readonly url: string }
  | { readonly sentinels: readonly Listener[]; readonly name: string; readonly natMap?: NatMap }
  | { readonly cluster: readonly Listener[]; readonly natMap?: NatMap };

interface Listener {
  readonly host: string;
  readonly port: number;
}

type NatMap = Readonly<Record<string, Listener>>;

type ConnectionOf<Name extends keyof Connections> = { readonly backend: Name } & Connections[Name];

/** How a process reaches a backend. */
export type Connection = { [Name in keyof Connections]: ConnectionOf<Name> }[keyof Connections];
export type RedisConnection = ConnectionOf<'redis'>;
export type MemcachedConnection = ConnectionOf<'memcached'>;
export type SqlConnection = ConnectionOf<'postgres' | 'mariadb' | 'mysql'>;
export type DatabaseConnection = ConnectionOf<'sqlite'> | SqlConnection;

/** Whether the locks open their connections by the options of a data source, or by the driver itself. @default typeorm */
export type Door = 'typeorm' | 'driver';

interface SqlDatabase {
  readonly url: string;
  readonly door?: Door;
  /** The strategy and its options. @default lease */
  readonly options?: SqlOptions;
}

type WithoutDataSource<Options> = Options extends unknown ? Omit<Options, 'dataSource'> : never;

export type SqlOptions = WithoutDataSource<TypeOrmOptions>;

const CONNECT: { [Name in keyof Connections]: (place: Connections[Name]) => Promise<LockBackend> } = {
  redis: async ({ given, ...options }) => {
    const { redis } = await import('nestjs-distributed-lock/redis');
    if (!given || !('url' in options)) return redis(options)();
    const { giveClient } = await import('./given-redis-client.js');
    return giveClient(given, options);
  },
  redlock: async (options) => (await import('nestjs-distributed-lock/redlock')).redlock(options)(),
  memcached: async (options) => (await import('nestjs-distributed-lock/memcached')).memcached(options)(),
  zookeeper: async (options) => (await import('nestjs-distributed-lock/zookeeper')).zookeeper(options)(),
  etcd: async (options) => (await import('nestjs-distributed-lock/etcd')).etcd(options)(),
  sqlite: (place) => connectDatabase({ backend: 'sqlite', ...place }),
  postgres: (place) => connectDatabase({ backend: 'postgres', ...place }, place.options),
  mariadb: (place) => connectDatabase({ backend: 'mariadb', ...place }, place.options),
  mysql: (place) => connectDatabase({ backend: 'mysql', ...place }, place.options),
};

/** The backend in this process, with a client of its own. Loads no other backend. */
export function connectBackend<Name extends keyof Connections>(connection: ConnectionOf<Name>): Promise<LockBackend> {
  const { backend, ...place } = connection;
  return CONNECT[backend](place as unknown as Connections[Name]);
}

/** The same for a client that waits so long for each answer. SQLite has no network to wait for. */
export function withPatience(connection: Connection, requestTimeoutMs: number): Connection {
  if (connection.backend === 'sqlite') return connection;
  if (connection.backend === 'postgres' || connection.backend === 'mariadb' || connection.backend === 'mysql') {
    return { ...connection, options: { ...connection.options, requestTimeoutMs } };
  }
  return { ...connection, requestTimeoutMs };
}

/** Options of a data source of the application's own, in the database with the locks. */
export async function dataSourceOptions(connection: DatabaseConnection): Promise<DataSourceOptions> {
  if (connection.backend !== 'sqlite') return { type: connection.backend, url: connection.url };
  const { CountedSqlite: driver } = await import('./counted-sqlite.js');
  return { type: 'better-sqlite3', driver, database: connection.database };
}

async function connectDatabase(connection: DatabaseConnection, options: SqlOptions = {}): Promise<LockBackend> {
  if (connection.door === 'driver') return connectByDriver(connection, { synchronize: true, ...options });
  const { typeorm } = await import('nestjs-distributed-lock/typeorm');
  return typeorm({ dataSource: { options: await dataSourceOptions(connection) }, synchronize: true, ...options })();
}

async function connectByDriver(connection: DatabaseConnection, options: SqlOptions): Promise<LockBackend> {
  if (connection.backend === 'sqlite') return connectSqlite(connection.database);
  const { url } = connection;
  if (connection.backend === 'postgres') {
    const { postgres } = await import('nestjs-distributed-lock/postgres');
    return postgres({ url, ...options })();
  }
  const { mysql } = await import('nestjs-distributed-lock/mysql');
  return mysql({ url, ...options })();
}

/** By `node:sqlite` where Node has it, since better-sqlite3 is not installed here. */
async function connectSqlite(file: string): Promise<LockBackend> {
  const { sqlite } = await import('nestjs-distributed-lock/sqlite');
  if (process.getBuiltinModule('node:sqlite')) return sqlite({ file, synchronize: true })();
  const { CountedSqlite: driver } = await import('./counted-sqlite.js');
  return sqlite({ file, driver, synchronize: true })();
}
