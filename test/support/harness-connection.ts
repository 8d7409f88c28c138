import type { LockBackend } from 'nestjs-distributed-lock/core';
import type { TypeOrmOptions } from 'nestjs-distributed-lock/typeorm';

/** How a process reaches a backend: plain data, so that a child process can be told. */
export type Connection =
  | { readonly backend: 'redis'; readonly url: string; readonly mode: 'queue' | 'plain' | 'getset' }
  | { readonly backend: 'sqlite'; readonly database: string }
  | {
      readonly backend: 'zookeeper';
      readonly connectString: string;
      readonly sessionTimeoutMs: number;
      readonly mode: 'sequential' | 'simple';
    }
  | SqlConnection;

export interface SqlConnection {
  readonly backend: 'postgres' | 'mariadb';
  readonly url: string;
  /** The strategy and its options. @default lease */
  readonly options?: SqlOptions;
}

type WithoutDataSource<Options> = Options extends unknown ? Omit<Options, 'dataSource'> : never;

export type SqlOptions = WithoutDataSource<TypeOrmOptions>;

/** The backend in this process, with a client of its own. Loads no other backend. */
export function connectBackend(connection: Connection): Promise<LockBackend> {
  if (connection.backend === 'redis') return connectRedis(connection);
  if (connection.backend === 'zookeeper') return connectZookeeper(connection);
  return connection.backend === 'sqlite' ? connectSqlite(connection) : connectSql(connection);
}

async function connectRedis({ url, mode }: Extract<Connection, { backend: 'redis' }>): Promise<LockBackend> {
  const { redis } = await import('nestjs-distributed-lock/redis');
  return redis({ url, mode });
}

async function connectZookeeper({ backend: _, ...options }: Extract<Connection, { backend: 'zookeeper' }>) {
  const { zookeeper } = await import('nestjs-distributed-lock/zookeeper');
  return zookeeper(options);
}

async function connectSqlite({ database }: Extract<Connection, { backend: 'sqlite' }>): Promise<LockBackend> {
  const { typeorm } = await import('nestjs-distributed-lock/typeorm');
  const { default: driver } = await import('libsql');
  return typeorm({ dataSource: { options: { type: 'better-sqlite3', driver, database } }, synchronize: true });
}

async function connectSql({ backend, url, options }: SqlConnection): Promise<LockBackend> {
  const { typeorm } = await import('nestjs-distributed-lock/typeorm');
  return typeorm({ dataSource: { options: { type: backend, url } }, synchronize: true, ...options });
}
