import type { RegisteredBackend } from '../registered-backend.js';
import { COMMON, REDIS_WIRE, QUEUE, POLLING } from '../registry-parts.js';
import { redisClusterHarness, redisHarness, redisSentinelHarness } from './harness.js';

/** Redis by other clients than ioredis. */
export const NODE_REDIS_BACKENDS = {
  'redis-queue-node-redis': {
    harness: () => redisHarness('queue', { clientPackage: 'redis' }),
    faults: [...COMMON, 'history-of-shares', 'servers', 'costs', 'idle', 'idle-in-line', 'network', 'order'],
    costs: QUEUE,
    wire: REDIS_WIRE,
    leaseStore: true,
  },
  'redis-queue-given-node-redis': {
    harness: () => redisHarness('queue', { given: 'redis' }),
    faults: ['processes', 'history', 'servers', 'costs'],
    costs: QUEUE,
    wire: REDIS_WIRE,
  },
  'redis-plain-node-redis': {
    harness: () => redisHarness('plain', { clientPackage: 'redis' }),
    faults: ['servers', 'costs', 'network'],
    costs: POLLING,
    wire: REDIS_WIRE,
  },
  'redis-getset-node-redis': {
    harness: () => redisHarness('getset', { clientPackage: 'redis' }),
    faults: ['history-of-kills', 'servers', 'order'],
  },
  'redis-getset-given-node-redis': {
    harness: () => redisHarness('getset', { given: 'redis-5' }),
    faults: ['history-of-kills', 'servers'],
  },
  'redis-queue-given-node-redis-5': {
    harness: () => redisHarness('queue', { given: 'redis-5' }),
    faults: ['processes', 'history', 'servers', 'costs'],
    costs: QUEUE,
  },
  'redis-queue-given-iovalkey': {
    harness: () => redisHarness('queue', { given: 'iovalkey' }),
    faults: ['history', 'servers'],
  },
  'redis-sentinel-node-redis': {
    harness: () => redisSentinelHarness('queue', { clientPackage: 'redis' }),
    faults: ['outcomes', 'processes', 'history', 'servers', 'costs', 'network', 'order'],
    costs: QUEUE,
    wire: REDIS_WIRE,
  },
  'redis-cluster-node-redis': {
    harness: () => redisClusterHarness('queue', { clientPackage: 'redis' }),
    faults: ['outcomes', 'processes', 'history', 'history-of-shares', 'servers', 'costs'],
    costs: QUEUE,
  },
} as const satisfies Record<string, RegisteredBackend>;
