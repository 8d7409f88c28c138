import type { LockBackend } from 'nestjs-distributed-lock/core';
import type { MemcachedOptions } from 'nestjs-distributed-lock/memcached';
import type { TypeOrmOptions } from 'nestjs-distributed-lock/typeorm';
import type { DataSourceOptions } from 'typeorm';

/** The settings of each backend: plain data, so that a child process can have them, too. */
interface Connections {
  redis: { readonly mode: 'queue' | 'plain' | 'getset' } & RedisTopology;
  redlock: { readonly urls: readonly string[] };
  memcached: Pick<MemcachedOptions, 'servers' | 'protocol' | 'requestTimeoutMs'>;
  zookeeper: {
    readonly connectString: string;
    readonly sessionTtlMs: number;
    readonly mode: 'sequential' | 'simple';
  };
  etcd: { readonly endpoints: readonly string[]; readonly sessionTtlMs: number };
  sqlite: { readonly database: string };
  postgres: SqlDatabase;
  mariadb: SqlDatabase;
  mysql: SqlDatabase;
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

interface SqlDatabase {
  readonly url: string;
  /** The strategy and its options. @default lease */
  readonly options?: SqlOptions;
}

type WithoutDataSource<Options> = Options extends unknown ? Omit<Options, 'dataSource'> : never;

export type SqlOptions = WithoutDataSource<TypeOrmOptions>;

const CONNECT: { [Name in keyof Connections]: (place: Connections[Name]) => Promise<LockBackend> } = {
  redis: async (options) => (await import('nestjs-distributed-lock/redis')).redis(options)(),
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

/** Options of a data source of the application's own, in the database with the locks. */
export async function dataSourceOptions(connection: DatabaseConnection): Promise<DataSourceOptions> {
  if (connection.backend !== 'sqlite') return { type: connection.backend, url: connection.url };
  const { CountedSqlite: driver } = await import('./counted-sqlite.js');
  return { type: 'better-sqlite3', driver, database: connection.database };
}

async function connectDatabase(connection: DatabaseConnection, options: SqlOptions = {}): Promise<LockBackend> {
  const { typeorm } = await import('nestjs-distributed-lock/typeorm');
  return typeorm({ dataSource: { options: await dataSourceOptions(connection) }, synchronize: true, ...options })();
}
