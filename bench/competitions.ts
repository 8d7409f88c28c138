import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { EtcdServer } from '../test/servers/etcd-server.js';
import { MysqlServer } from '../test/servers/mysql-server.js';
import { MemcachedServer } from '../test/servers/memcached-server.js';
import { PostgresServer } from '../test/servers/postgres-server.js';
import { RedisServer } from '../test/servers/redis-server.js';
import { ZookeeperServer } from '../test/servers/zookeeper-server.js';
import { type Connection, withoutTracking } from '../test/support/harness-connection.js';
import { BARE_SCRIPTS } from './contestants/bare-scripts.js';
import type { Contestant } from './contestants/contestant.js';
import { libraryContestant } from './contestants/library.js';
import { MUTEX, REDIS_PEERS } from './contestants/redis-peers.js';
import { PERMIT_FLOOR, PERMIT_HOLDERS, READERS, REDIS_SEMAPHORE } from './contestants/shares.js';
import { ETCD_FLOOR } from './floors/etcd.js';
import { MEMCACHED_FLOOR } from './floors/memcached.js';
import { REDIS_FLOOR, REDLOCK_FLOOR } from './floors/redis.js';
import { MARIADB_FLOOR, POSTGRES_FLOOR, SQLITE_FLOOR } from './floors/sql.js';
import { ZOOKEEPER_FLOOR } from './floors/zookeeper.js';

/** Servers of one backend that only the benchmark uses, with the settings that a user would give them. */
export interface PrivateServers {
  readonly connection: Connection;
  /** Address of the Redis server, where there is exactly one: its commands can be counted. */
  readonly redisUrl?: string;
  readonly stop: () => Promise<void>;
}

interface Competition {
  readonly start: () => Promise<PrivateServers>;
  /** Name of the server in the report, and a command that prints its version. */
  readonly server: { readonly name: string; readonly command: readonly [string, ...string[]] };
  readonly floor: Contestant;
  readonly others: readonly Contestant[];
}

const TTL_SECONDS = 15;

const REDIS = { name: 'Redis', command: ['redis-server', '--version'] } as const;

async function startRedis(): Promise<PrivateServers> {
  const server = await RedisServer.start();
  const { url } = server;
  return { connection: { backend: 'redis', mode: 'queue', url }, redisUrl: url, stop: () => server.stop() };
}

/** Competition of each backend: its servers and its contestants. */
const COMPETITIONS = {
  redis: {
    server: REDIS,
    start: startRedis,
    floor: REDIS_FLOOR,
    others: [
      libraryContestant('ours, queue'),
      libraryContestant('ours, plain', useRedisMode('plain')),
      {
        ...libraryContestant('ours, getset', useRedisMode('getset')),
        commandsBesideScripts: ['setnx', 'get', 'getset', 'del', 'time'],
      },
      libraryContestant('ours, queue, release not awaited', useRedisMode('queue'), { awaitRelease: false }),
      libraryContestant('ours, plain, release not awaited', useRedisMode('plain'), { awaitRelease: false }),
      { ...libraryContestant('ours, queue, by node-redis', useNodeRedis('queue')), isUncontendedOnly: true },
      { ...libraryContestant('ours, plain, by node-redis', useNodeRedis('plain')), isUncontendedOnly: true },
      libraryContestant('ours, queue, without tracking', withoutTracking),
      ...BARE_SCRIPTS,
      ...REDIS_PEERS,
      MUTEX,
    ],
  },
  'redis-readers': {
    server: REDIS,
    start: startRedis,
    floor: REDIS_FLOOR,
    others: [libraryContestant('ours, queue'), READERS],
  },
  'redis-permits': {
    server: REDIS,
    start: startRedis,
    floor: PERMIT_FLOOR,
    others: [libraryContestant('ours, queue'), PERMIT_HOLDERS, REDIS_SEMAPHORE],
  },
  redlock: {
    server: REDIS,
    start: async () => {
      const servers = await Promise.all(Array.from({ length: 5 }, () => RedisServer.start()));
      return {
        connection: { backend: 'redlock', urls: servers.map(({ url }) => url) },
        stop: async () => void (await Promise.all(servers.map((server) => server.stop()))),
      };
    },
    floor: REDLOCK_FLOOR,
    others: [libraryContestant()],
  },
  memcached: {
    server: { name: 'memcached', command: ['memcached', '--version'] },
    start: async () => {
      const server = await MemcachedServer.start();
      const connection = { backend: 'memcached', servers: `127.0.0.1:${server.port}`, protocol: 'auto' } as const;
      return { connection, stop: () => server.stop() };
    },
    floor: MEMCACHED_FLOOR,
    others: [libraryContestant()],
  },
  zookeeper: {
    server: { name: 'ZooKeeper', command: ['dpkg-query', '-W', 'zookeeper'] },
    start: async () => {
      const server = await ZookeeperServer.start({ settings: { tickTime: 2_000 } });
      return {
        connection: {
          backend: 'zookeeper',
          connectString: server.address,
          sessionTtlMs: TTL_SECONDS * 1_000,
          mode: 'sequential',
        },
        stop: () => server.stop(),
      };
    },
    floor: ZOOKEEPER_FLOOR,
    others: [libraryContestant()],
  },
  etcd: {
    server: { name: 'etcd', command: ['etcd', '--version'] },
    start: async () => {
      const server = await EtcdServer.start();
      return {
        connection: { backend: 'etcd', endpoints: server.urls, sessionTtlMs: TTL_SECONDS * 1_000 },
        stop: () => server.stop(),
      };
    },
    floor: ETCD_FLOOR,
    others: [libraryContestant()],
  },
  postgres: {
    server: { name: 'PostgreSQL', command: ['psql', '--version'] },
    start: async () => {
      const server = await PostgresServer.start();
      return { connection: { backend: 'postgres', url: server.url }, stop: () => server.stop() };
    },
    floor: POSTGRES_FLOOR,
    others: [libraryContestant(), libraryContestant('ours, by the driver', useDriver)],
  },
  mariadb: {
    server: { name: 'MariaDB', command: ['mariadbd', '--version'] },
    start: async () => {
      const server = await MysqlServer.start('mariadb');
      return { connection: { backend: 'mariadb', url: server.url }, stop: () => server.stop() };
    },
    floor: MARIADB_FLOOR,
    others: [libraryContestant(), libraryContestant('ours, by the driver', useDriver)],
  },
  sqlite: {
    server: { name: 'libsql', command: ['node', '-p', 'require("./node_modules/libsql/package.json").version'] },
    start: async () => {
      const directory = await mkdtemp(join(tmpdir(), 'bench-'));
      return {
        connection: { backend: 'sqlite', database: join(directory, 'locks.sqlite') },
        stop: () => rm(directory, { recursive: true }),
      };
    },
    floor: SQLITE_FLOOR,
    others: [libraryContestant()],
  },
} as const satisfies Record<string, Competition>;

export type BackendName = keyof typeof COMPETITIONS;

export const BACKENDS = Object.keys(COMPETITIONS) as BackendName[];

export const competitionOf = (backend: BackendName): Competition => COMPETITIONS[backend];

function useRedisMode(mode: 'queue' | 'plain' | 'getset') {
  return (to: Connection): Connection => (to.backend === 'redis' ? { ...to, mode } : to);
}

function useNodeRedis(mode: 'queue' | 'plain') {
  return (to: Connection): Connection => (to.backend === 'redis' ? { ...to, mode, clientPackage: 'redis' } : to);
}

function useDriver(to: Connection): Connection {
  return to.backend === 'postgres' || to.backend === 'mariadb' ? { ...to, door: 'driver' } : to;
}
