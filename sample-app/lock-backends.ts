import type { BackendFactory } from 'nestjs-distributed-lock/core';
import { etcd } from 'nestjs-distributed-lock/etcd';
import { memcached } from 'nestjs-distributed-lock/memcached';
import { memory } from 'nestjs-distributed-lock/memory';
import { redis } from 'nestjs-distributed-lock/redis';
import { redlock } from 'nestjs-distributed-lock/redlock';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import { zookeeper } from 'nestjs-distributed-lock/zookeeper';
import { databaseOptions } from './database/database-options.js';
import type { DatabaseType } from './database/database-type.js';

/** The values that a backend is made of. */
interface LockSettings {
  /** The value of the choice's variable, or its fallback. */
  readonly server: string;
  /** Where the sale is. */
  readonly saleDb: string;
  readonly ttlMs: number;
}

/** One choice of `LOCK_BACKEND`. */
interface LockBackendChoice {
  /** The environment variable that says where the server is. */
  readonly variable?: string;
  /** Where it is when the variable is not set; several have commas between them. */
  readonly fallback?: string;
  /** If it is a database, which kind. The sale is in the same one then, unless `SALE_DB` says otherwise. */
  readonly database?: DatabaseType;
  /** A lock ends with its connection there, so no key stays closed after a release: the restock job is refused. */
  readonly endsWithConnection?: true;
  readonly create: (settings: LockSettings) => BackendFactory;
}

const POSTGRES = {
  variable: 'POSTGRES_URL',
  fallback: 'postgres://postgres@127.0.0.1:5432/postgres',
  database: 'postgres',
} as const;
const MARIADB = {
  variable: 'MARIADB_URL',
  fallback: 'mariadb://root@127.0.0.1:3306/test',
  database: 'mariadb',
} as const;

/** Where the locks live is one line of an application. Everything else in here does not know. */
const CHOICES = {
  sqlite: { create: ({ saleDb }) => typeorm(lockTable(saleDb)) },
  postgres: { ...POSTGRES, create: leases },
  'postgres-row': { ...POSTGRES, create: rows, endsWithConnection: true },
  'postgres-session': { ...POSTGRES, create: sessions, endsWithConnection: true },
  mariadb: { ...MARIADB, create: leases },
  'mariadb-row': { ...MARIADB, create: rows, endsWithConnection: true },
  'mariadb-session': { ...MARIADB, create: sessions, endsWithConnection: true },
  redis: {
    variable: 'REDIS_URL',
    fallback: 'redis://127.0.0.1:6379',
    create: ({ server }) => redis({ url: server }),
  },
  'redis-sentinel': {
    variable: 'REDIS_SENTINELS',
    fallback: '127.0.0.1:26379/mymaster',
    create: ({ server }) => redis(sentinels(server)),
  },
  'redis-cluster': {
    variable: 'REDIS_CLUSTER',
    fallback: '127.0.0.1:7000,127.0.0.1:7001,127.0.0.1:7002',
    create: ({ server }) => redis({ cluster: addresses(server) }),
  },
  redlock: {
    variable: 'REDLOCK_URLS',
    fallback: [6379, 6380, 6381, 6382, 6383].map((port) => `redis://127.0.0.1:${port}`).join(','),
    create: ({ server }) => redlock({ urls: server.split(',') }),
  },
  memcached: {
    variable: 'MEMCACHED_SERVERS',
    fallback: '127.0.0.1:11211',
    create: ({ server }) => memcached({ servers: server }),
  },
  zookeeper: {
    variable: 'ZOOKEEPER_URL',
    fallback: '127.0.0.1:2181',
    create: ({ server, ttlMs }) => zookeeper({ connectString: server, sessionTtlMs: ttlMs }),
  },
  etcd: {
    variable: 'ETCD_ENDPOINTS',
    fallback: 'http://127.0.0.1:2379',
    create: ({ server, ttlMs }) => etcd({ endpoints: server.split(','), sessionTtlMs: ttlMs }),
  },
  memory: { create: () => memory() },
} satisfies Record<string, LockBackendChoice>;

/** @param text `host:port`, or several with commas between them */
function addresses(text: string): { readonly host: string; readonly port: number }[] {
  return text.split(',').map((address) => {
    const { hostname, port } = new URL(`tcp://${address}`);
    return { host: hostname.replace(/^\[|\]$/gu, ''), port: Number(port) };
  });
}

/** @param text where they are, and what they call the master: `host:port,host:port/name` */
function sentinels(text: string) {
  const [where = '', name = ''] = text.split('/');
  return { sentinels: addresses(where), name };
}

function leases({ server }: LockSettings): BackendFactory {
  return typeorm(lockTable(server));
}

function rows({ server }: LockSettings): BackendFactory {
  return typeorm({ ...lockTable(server), strategy: 'row' });
}

function sessions({ server, ttlMs }: LockSettings): BackendFactory {
  return typeorm({ ...lockTable(server), strategy: 'session', sessionTtlMs: ttlMs });
}

/** The migrations make this table where the sale is, and the locks may be elsewhere. */
function lockTable(database: string) {
  return { dataSource: { options: databaseOptions(database) }, synchronize: true };
}

export type BackendName = keyof typeof CHOICES;

export const LOCK_BACKENDS: Readonly<Record<BackendName, LockBackendChoice>> = CHOICES;
export const BACKEND_NAMES = Object.keys(CHOICES) as BackendName[];
