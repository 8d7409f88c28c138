import { describe, it } from '@jest/globals';
import { leaseStorePromises } from 'nestjs-distributed-lock/conformance';
import type { LeaseStore } from 'nestjs-distributed-lock/core';
import type { BackendHarness } from '../conformance/backend-harness.js';
import { describeOnBackend } from '../conformance/describe-lock-backend.js';
import { etcdHarness } from '../support/harness-etcd.js';
import { memoryHarness } from '../support/harness-memory.js';
import { redisHarness } from '../support/harness-redis.js';
import { sqlHarness } from '../support/harness-sql.js';
import { zookeeperHarness } from '../support/harness-zookeeper.js';
import { wantedOf } from './describe-backend.js';

const HARNESSES = {
  memory: memoryHarness,
  'redis-queue': () => redisHarness('queue'),
  'redis-plain': () => redisHarness('plain'),
  postgres: () => sqlHarness('postgres'),
  'postgres-row': () => sqlHarness('postgres-row'),
  'mariadb-row': () => sqlHarness('mariadb-row'),
  'postgres-session': () => sqlHarness('postgres-session'),
  etcd: () => etcdHarness(1),
  zookeeper: () => zookeeperHarness('sequential', 'single'),
  'zookeeper-simple': () => zookeeperHarness('simple', 'single'),
} as const satisfies Record<string, () => BackendHarness>;

const NAMES = [
  'memory',
  'redis-queue',
  'redis-plain',
  'postgres',
  'postgres-row',
  'mariadb-row',
  'postgres-session',
  'etcd',
  'zookeeper',
  'zookeeper-simple',
] as const;

/** What is exported for the stores of others, on some of ours. */
describe('the conformance suite', () => {
  for (const name of wantedOf(NAMES)) {
    const harness = HARNESSES[name]();
    const promises = leaseStorePromises({
      connect: () => storeOf(harness),
      // On a busy machine the loop of a process may stand still for longer than the shortest TTL of memory.
      shortTtlMs: Math.max(300, harness.shortTtlMs),
      revoke: (key) => harness.revoke(key),
      ...(harness.freeze ? { freeze: harness.freeze } : {}),
    });
    describeOnBackend(name, harness, () => {
      for (const { name: promise, check } of promises) it(promise, check);
    });
  }
});

async function storeOf(harness: BackendHarness): Promise<LeaseStore> {
  const { store } = await harness.connect();
  return store;
}
