import { etcdHarness } from './etcd/harness.js';
import { memcachedHarness } from './memcached/harness.js';
import { memoryHarness } from './memory/harness.js';
import { redisClusterHarness, redisHarness, redisSentinelHarness } from './redis/harness.js';
import { NODE_REDIS_BACKENDS } from './redis/node-redis-backends.js';
import { redlockHarness } from './redlock/harness.js';
import { sqlHarness } from './typeorm/harness.js';
import { sqliteHarness } from './typeorm/sqlite-harness.js';
import { zookeeperHarness } from './zookeeper/harness.js';
import { POLLS, COMMON, REDIS_WIRE, ONE_ROUND_TRIP, QUEUE, POLLING } from './registry-parts.js';
import type { FaultName, RegisteredBackend, Wire } from './registered-backend.js';

const SQL = [...COMMON, 'servers', 'costs', 'fence', 'hammer', 'idle', 'network', 'order'] as const;

const ZOOKEEPER_WIRE: Wire = { acquire: '/locks/', release: '/locks/' };

/** A transaction with a savepoint, and a waiter that sleeps on the server. */
const ROW = { acquire: 6, renew: 1, refused: 5, wait: [3, 30], handOver: [1, 15] } as const;
const SESSION = { acquire: 2, release: 1, renew: 1, refused: 1, wait: POLLS, handOver: [1, 4] } as const;

const rowWire = (quote: string): Wire => ({
  acquire: `update ${quote}distributed_lock${quote} set token`,
  release: 'COMMIT',
});

const POSTGRES_LEASE = {
  faults: [...SQL, 'history-of-shares', 'idle-in-line'],
  costs: { ...ONE_ROUND_TRIP, wait: 2, handOver: 2 },
  wire: { acquire: 'insert_into_distributed_lock', release: 'set_metadata_null' },
  leaseStore: true,
} as const;
const POSTGRES_ROW = {
  faults: SQL,
  costs: { ...ROW, release: 1 },
  wire: rowWire('"'),
  leaseStore: true,
} as const;
const POSTGRES_SESSION = {
  sessions: true,
  faults: [...SQL, 'idle-in-line', 'lost-grant'],
  costs: SESSION,
  wire: { acquire: 'pg_try_advisory_lock', release: 'pg_advisory_unlock' },
  leaseStore: true,
} as const;
const MYSQL_LEASE = {
  faults: [...SQL, 'history-of-shares', 'idle-in-line'],
  costs: { acquire: 1, release: 1, renew: 1, refused: 2, wait: [10, 122], handOver: [1, 4] },
  wire: { acquire: 'last_insert_id(if', release: 'owner = null' },
  lockStore: true,
} as const;
const MYSQL_ROW = { faults: SQL, costs: { ...ROW, release: 3 }, wire: rowWire('`'), leaseStore: true } as const;
const MYSQL_SESSION = {
  sessions: true,
  faults: [...SQL, 'idle-in-line', 'lost-grant'],
  costs: SESSION,
  wire: { acquire: 'get_lock', release: 'release_lock' },
} as const;

/** Every backend, in each of its modes, once. All tests that run on several backends are fed from here. */
export const REGISTRY = {
  memory: { quick: true, harness: memoryHarness, faults: [], leaseStore: true, lockStore: true },

  'redis-queue': {
    quick: true,
    harness: () => redisHarness('queue'),
    faults: [...COMMON, 'history-of-shares', 'servers', 'costs', 'idle', 'idle-in-line', 'network', 'order', 'resend'],
    costs: QUEUE,
    wire: REDIS_WIRE,
    leaseStore: true,
    lockStore: true,
  },
  'redis-plain': {
    harness: () => redisHarness('plain'),
    faults: [
      'processes',
      'history',
      'leaders',
      'servers',
      'costs',
      'idle',
      'idle-in-line',
      'network',
      'order',
      'resend',
    ],
    costs: POLLING,
    wire: REDIS_WIRE,
    leaseStore: true,
    lockStore: true,
  },
  'redis-getset': {
    quick: true,
    harness: () => redisHarness('getset'),
    faults: ['history-of-kills', 'servers', 'costs', 'order'],
    // A lease that is about to end is left to end.
    costs: { acquire: 2, release: 2, reopen: 1, renew: 2, refused: 1, wait: POLLS, handOver: [2, 5] },
  },
  'redis-sentinel': {
    harness: () => redisSentinelHarness('queue'),
    faults: [...COMMON, 'history-of-shares', 'servers', 'costs', 'network', 'order'],
    costs: QUEUE,
    wire: REDIS_WIRE,
  },
  'redis-cluster': {
    harness: () => redisClusterHarness('queue'),
    faults: [...COMMON, 'history-of-shares', 'servers', 'costs'],
    costs: QUEUE,
  },
  ...NODE_REDIS_BACKENDS,
  redlock: {
    quick: true,
    harness: () => redlockHarness(),
    faults: [...COMMON, 'servers', 'costs', 'hammer'],
    // One to each of five nodes.
    costs: { acquire: 5, release: 5, renew: 5, refused: 5, wait: [25, 305], handOver: [5, 15] },
    lockStore: true,
  },

  'memcached-meta': {
    quick: true,
    harness: () => memcachedHarness('meta'),
    faults: [...COMMON, 'history-of-shares', 'servers', 'costs', 'hammer', 'idle', 'idle-in-line', 'network', 'order'],
    costs: POLLING,
    wire: { acquire: 'add lock:l:', release: 'md ' },
    lockStore: true,
  },
  'memcached-classic': {
    harness: () => memcachedHarness('classic'),
    faults: ['costs', 'hammer', 'network', 'order'],
    costs: POLLING,
    wire: { acquire: 'add lock:l:', release: '0 -1 0 ' },
  },

  etcd: {
    quick: true,
    harness: (options) => etcdHarness(1, options),
    sessions: true,
    faults: [...COMMON, 'history-of-shares', 'servers', 'costs', 'idle', 'idle-in-line', 'order'],
    // The watch of the queue entry before ours is a request each, to begin and to end.
    costs: { ...ONE_ROUND_TRIP, wait: 2, handOver: 3 },
    leaseStore: true,
  },
  'etcd-cluster': {
    harness: (options) => etcdHarness(3, options),
    sessions: true,
    faults: ['history', 'history-of-shares', 'order'],
  },

  zookeeper: {
    quick: true,
    harness: (options) => zookeeperHarness('sequential', 'single', options),
    sessions: true,
    faults: [
      ...COMMON,
      'history-of-shares',
      'servers',
      'costs',
      'hammer',
      'idle',
      'idle-in-line',
      'network',
      'order-of-slow-sessions',
    ],
    costs: { acquire: 1, release: 1, renew: 1, refused: 3, wait: 2, handOver: 2 },
    wire: ZOOKEEPER_WIRE,
    leaseStore: true,
  },
  'zookeeper-simple': {
    harness: (options) => zookeeperHarness('simple', 'single', options),
    sessions: true,
    faults: ['costs', 'network'],
    costs: { acquire: 1, release: 2, renew: 1, refused: 2, wait: 2, handOver: 3 },
    wire: ZOOKEEPER_WIRE,
    leaseStore: true,
  },
  'zookeeper-ensemble': {
    harness: (options) => zookeeperHarness('sequential', 'ensemble', options),
    sessions: true,
    faults: ['history', 'order-of-slow-sessions'],
  },

  sqlite: {
    quick: true,
    harness: () => sqliteHarness(),
    faults: [...COMMON, 'history-of-shares', 'fence', 'hammer'],
    lockStore: true,
  },
  'sqlite-driver': { harness: () => sqliteHarness('driver'), faults: ['processes', 'history', 'fence'] },
  postgres: { quick: true, harness: () => sqlHarness('postgres'), ...POSTGRES_LEASE, lockStore: true },
  'postgres-driver': { harness: () => sqlHarness('postgres-driver'), ...POSTGRES_LEASE },
  mariadb: { quick: true, harness: () => sqlHarness('mariadb'), ...MYSQL_LEASE },
  mysql: { harness: () => sqlHarness('mysql'), ...MYSQL_LEASE },
  // A row that the database gave to a waiter whom it no longer reaches is his until the end of his TTL: no `idle-in-line`.
  'postgres-row': { quick: true, harness: () => sqlHarness('postgres-row'), ...POSTGRES_ROW },
  'postgres-driver-row': {
    harness: () => sqlHarness('postgres-driver-row'),
    ...POSTGRES_ROW,
    // TypeORM begins a transaction in two statements.
    costs: { ...POSTGRES_ROW.costs, acquire: 5, refused: 4 },
    wire: { ...POSTGRES_ROW.wire, release: 'commit' },
  },
  'mariadb-row': { harness: () => sqlHarness('mariadb-row'), ...MYSQL_ROW },
  'mysql-row': { harness: () => sqlHarness('mysql-row'), ...MYSQL_ROW, wire: { ...MYSQL_ROW.wire, release: 'commit' } },
  'postgres-session': { harness: (options) => sqlHarness('postgres-session', options), ...POSTGRES_SESSION },
  'postgres-driver-session': {
    harness: (options) => sqlHarness('postgres-driver-session', options),
    ...POSTGRES_SESSION,
  },
  'mariadb-session': { quick: true, harness: (options) => sqlHarness('mariadb-session', options), ...MYSQL_SESSION },
  'mysql-session': { harness: (options) => sqlHarness('mysql-session', options), ...MYSQL_SESSION },
} as const satisfies Record<string, RegisteredBackend>;

export type BackendName = keyof typeof REGISTRY;

export function registered(name: BackendName): RegisteredBackend {
  return REGISTRY[name];
}

/** Those that go through a theme. */
export function goingThrough(fault: FaultName): BackendName[] {
  return (Object.keys(REGISTRY) as BackendName[]).filter((name) => registered(name).faults.includes(fault));
}

/** A field that an entry must have for the themes that it goes through. */
export function demanded<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the registry lacks what this theme needs');
  return value;
}
