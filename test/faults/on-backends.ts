import { wantedOf } from '../backends/describe-backend.js';
import type { BackendHarness } from '../conformance/backend-harness.js';
import type { Contract } from '../conformance/contract.js';
import { describeOnBackend } from '../conformance/describe-lock-backend.js';
import { etcdHarness } from '../support/harness-etcd.js';
import { memcachedHarness } from '../support/harness-memcached.js';
import { redisClusterHarness, redisHarness, redisSentinelHarness } from '../support/harness-redis.js';
import { redlockHarness } from '../support/harness-redlock.js';
import { type SqlBackendName, sqlHarness, type SqlHarnessOptions } from '../support/harness-sql.js';
import { sqliteHarness } from '../support/harness-sqlite.js';
import { zookeeperHarness } from '../support/harness-zookeeper.js';

const HARNESSES = {
  'redis-queue': () => redisHarness('queue'),
  'redis-plain': () => redisHarness('plain'),
  'redis-getset': () => redisHarness('getset'),
  'redis-sentinel': () => redisSentinelHarness('queue'),
  'redis-cluster': () => redisClusterHarness('queue'),
  redlock: () => redlockHarness(),
  'memcached-meta': () => memcachedHarness('meta'),
  'memcached-classic': () => memcachedHarness('classic'),
  etcd: (options) => etcdHarness(1, options),
  'etcd-cluster': (options) => etcdHarness(3, options),
  sqlite: () => sqliteHarness(),
  postgres: () => sqlHarness('postgres'),
  mariadb: () => sqlHarness('mariadb'),
  'postgres-row': () => sqlHarness('postgres-row'),
  'mariadb-row': () => sqlHarness('mariadb-row'),
  'postgres-session': (options) => sqlHarness('postgres-session', options),
  'mariadb-session': (options) => sqlHarness('mariadb-session', options),
  zookeeper: (options) => zookeeperHarness('sequential', 'single', options),
  'zookeeper-simple': (options) => zookeeperHarness('simple', 'single', options),
  'zookeeper-ensemble': (options) => zookeeperHarness('sequential', 'ensemble', options),
} satisfies Record<string, (options?: SqlHarnessOptions) => BackendHarness>;

export type BackendName = keyof typeof HARNESSES;

/** Every mode. */
export const REDIS = ['redis-queue', 'redis-plain', 'redis-getset'] as const;

/** Where a failover is possible; `failover-*.spec.ts` has what happens then. */
export const REDIS_SETS = ['redis-sentinel', 'redis-cluster'] as const;

/** Both dialects. */
export const MEMCACHED = ['memcached-meta', 'memcached-classic'] as const;

/** One server, and a cluster of three. */
export const ETCD = ['etcd', 'etcd-cluster'] as const;

/** One server, and an ensemble of three. */
export const ZOOKEEPER = ['zookeeper', 'zookeeper-ensemble'] as const;

/** Every strategy on every database server. */
export const SQL_SERVERS: readonly SqlBackendName[] = [
  'postgres',
  'mariadb',
  'postgres-row',
  'mariadb-row',
  'postgres-session',
  'mariadb-session',
];

/** For what does not depend on the mode or the number of servers. */
export const ONE_OF_EACH = [
  'redis-queue',
  ...REDIS_SETS,
  'redlock',
  'etcd',
  'sqlite',
  'memcached-meta',
  'zookeeper',
  ...SQL_SERVERS,
] as const;

/** The same tests on several backends, each with a server of its own, as far as `LOCK_BACKENDS` wants them. */
export function onBackends<Name extends BackendName>(
  names: readonly Name[],
  tests: (contract: Contract, name: Name) => void,
  options: SqlHarnessOptions = {},
): void {
  for (const name of wantedOf(names)) {
    describeOnBackend(name, HARNESSES[name](options), (contract) => tests(contract, name));
  }
}
