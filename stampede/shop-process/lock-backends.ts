import type { BackendFactory } from 'nestjs-distributed-lock/core';
import type { DatabaseType } from './database-type.js';

/** Values that a backend is made of. */
interface LockSettings {
  /** Address of the locks' server: the value of the choice's variable. */
  readonly server: string;
  /** SQLite file or database URL of the sale. */
  readonly saleDb: string;
  readonly ttlMs: number;
}

/** One choice of `--backend`. */
interface LockBackendChoice {
  /** Name of the environment variable with the server's address; several addresses have commas between them. */
  readonly variable?: string;
  /** Type of the server, where it is a database. The sale is in the same one then. */
  readonly database?: DatabaseType;
  /** Whether a holder writes the sale in the transaction of its lock. */
  readonly writesInLock?: true;
  /** Loads the backend with its client, which no other backend needs. */
  readonly create: (settings: LockSettings) => Promise<BackendFactory>;
}

const POSTGRES = { variable: 'POSTGRES_URL', database: 'postgres' } as const;
const MARIADB = { variable: 'MARIADB_URL', database: 'mariadb' } as const;

const CHOICES = {
  sqlite: { create: ({ saleDb, ttlMs }) => createLeases({ server: saleDb, ttlMs }) },
  postgres: { ...POSTGRES, create: createLeases },
  'postgres-row': { ...POSTGRES, create: createRowLocks, writesInLock: true },
  'postgres-session': { ...POSTGRES, create: createSessionLocks },
  mariadb: { ...MARIADB, create: createLeases },
  'mariadb-row': { ...MARIADB, create: createRowLocks, writesInLock: true },
  'mariadb-session': { ...MARIADB, create: createSessionLocks },
  redis: {
    variable: 'REDIS_URL',
    async create({ server }) {
      const { redis } = await import('nestjs-distributed-lock/redis');
      return redis({ url: server });
    },
  },
  'redis-sentinel': {
    variable: 'REDIS_SENTINELS',
    async create({ server }) {
      const { redis } = await import('nestjs-distributed-lock/redis');
      const [sentinels = '', name = ''] = server.split('/');
      return redis({ sentinels: readAddresses(sentinels), name });
    },
  },
  'redis-cluster': {
    variable: 'REDIS_CLUSTER',
    async create({ server }) {
      const { redis } = await import('nestjs-distributed-lock/redis');
      return redis({ cluster: readAddresses(server) });
    },
  },
  redlock: {
    variable: 'REDLOCK_URLS',
    async create({ server }) {
      const { redlock } = await import('nestjs-distributed-lock/redlock');
      return redlock({ urls: server.split(',') });
    },
  },
  memcached: {
    variable: 'MEMCACHED_SERVERS',
    async create({ server }) {
      const { memcached } = await import('nestjs-distributed-lock/memcached');
      return memcached({ servers: server });
    },
  },
  zookeeper: {
    variable: 'ZOOKEEPER_URL',
    async create({ server, ttlMs }) {
      const { zookeeper } = await import('nestjs-distributed-lock/zookeeper');
      return zookeeper({ connectString: server, sessionTtlMs: ttlMs });
    },
  },
  etcd: {
    variable: 'ETCD_ENDPOINTS',
    async create({ server, ttlMs }) {
      const { etcd } = await import('nestjs-distributed-lock/etcd');
      return etcd({ endpoints: server.split(','), sessionTtlMs: ttlMs });
    },
  },
  memory: {
    async create() {
      const { memory } = await import('nestjs-distributed-lock/memory');
      return memory();
    },
  },
} satisfies Record<string, LockBackendChoice>;

/** @param text `host:port`, or several with commas between them */
function readAddresses(text: string): { readonly host: string; readonly port: number }[] {
  return text.split(',').map((address) => {
    const { hostname, port } = new URL(`tcp://${address}`);
    return { host: hostname.replace(/^\[|\]$/gu, ''), port: Number(port) };
  });
}

type DatabaseSettings = Omit<LockSettings, 'saleDb'>;

async function createLeases({ server }: DatabaseSettings): Promise<BackendFactory> {
  const { typeorm, table } = await loadTypeOrm(server);
  return typeorm(table);
}

async function createRowLocks({ server }: DatabaseSettings): Promise<BackendFactory> {
  const { typeorm, table } = await loadTypeOrm(server);
  return typeorm({ ...table, strategy: 'row' });
}

async function createSessionLocks({ server, ttlMs }: DatabaseSettings): Promise<BackendFactory> {
  const { typeorm, table } = await loadTypeOrm(server);
  return typeorm({ ...table, strategy: 'session', sessionTtlMs: ttlMs });
}

/** Loads TypeORM, with the options of a lock table that need not be in the sale's database. */
async function loadTypeOrm(database: string) {
  const { typeorm } = await import('nestjs-distributed-lock/typeorm');
  const { makeDatabaseOptions } = await import('./database-options.js');
  return { typeorm, table: { dataSource: { options: makeDatabaseOptions(database) }, synchronize: true } };
}

export type BackendName = keyof typeof CHOICES;

export const LOCK_BACKENDS: Readonly<Record<BackendName, LockBackendChoice>> = CHOICES;
export const BACKEND_NAMES = Object.keys(CHOICES) as BackendName[];
