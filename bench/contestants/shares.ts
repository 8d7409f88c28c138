import { Redis } from 'ioredis';
import { createHash, randomUUID } from 'node:crypto';
import { type AcquireOptions, LockService } from 'nestjs-distributed-lock/core';
import { connectBackend } from '../../test/support/harness-connection.js';
import { type Contestant, RETRY_PAUSE, retryUntilGranted } from './contestant.js';
import { importPackage } from './import-package.js';
import { urlOf } from './url-of.js';

/** Number of callers that a semaphore of the benchmark lets in. */
export const PERMITS = 10;

/** Part of a reader: as many readers as a race can have fit into one lock. */
const READER_PART = 1e-6;

export const READERS: Contestant = shareContestant('ours, shared', { mode: 'shared' }, READER_PART);

export const PERMIT_HOLDERS: Contestant = shareContestant(
  `ours, one of ${PERMITS} permits`,
  { limit: PERMITS },
  1 / PERMITS,
);

function shareContestant(name: string, claim: AcquireOptions, part: number): Contestant {
  return {
    name,
    renewsLease: true,
    commandsBesideScripts: [],
    connect: async (to, { ttlMs, waitMs }) => {
      const locks = new LockService(await connectBackend(to), { defaults: { ttlMs, waitMs } });
      await locks.start();
      return {
        part,
        acquire: async (key) => {
          const lock = await locks.acquire(key, claim);
          return () => lock.release();
        },
        withLock: (key, work) => locks.withLock(key, work, claim),
        withWholeLock: (key, work) => locks.withLock(key, work),
        close: () => locks.close(),
      };
    },
  };
}

/** The semaphore of another library, used as its documentation shows. */
export const REDIS_SEMAPHORE: Contestant = {
  name: 'redis-semaphore, Semaphore',
  packageName: 'redis-semaphore',
  renewsLease: true,
  connect: async (to, { ttlMs, waitMs }) => {
    const client = new Redis(urlOf(to));
    const { Semaphore } = await importPackage<RedisSemaphore>('redis-semaphore');
    const retryInterval = (RETRY_PAUSE.shortestMs + RETRY_PAUSE.longestMs) / 2;
    const options = { lockTimeout: ttlMs, acquireTimeout: waitMs, retryInterval };
    return {
      part: 1 / PERMITS,
      withLock: async (key, work) => {
        const semaphore = new Semaphore(client, key, PERMITS, options);
        await semaphore.acquire();
        try {
          await work();
        } finally {
          await semaphore.release();
        }
      },
      close: () => client.disconnect(),
    };
  },
};

const TAKE_PERMIT = script(`local now = redis.call('time')
now = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('zremrangebyscore', KEYS[1], '-inf', now)
if redis.call('zcard', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('zadd', KEYS[1], now + ARGV[3], ARGV[1])
redis.call('pexpire', KEYS[1], ARGV[3])
return 1`);
const RETURN_PERMIT = script(`return redis.call('zrem', KEYS[1], ARGV[1])`);

/** Floor of permits on Redis: a sorted set of holders by the time at which their leases end. */
export const PERMIT_FLOOR: Contestant = {
  name: 'floor: a sorted set by two scripts',
  renewsLease: false,
  commandsBesideScripts: [],
  connect: async (to, terms) => {
    const redis = new Redis(urlOf(to));
    await Promise.all([TAKE_PERMIT, RETURN_PERMIT].map(({ source }) => redis.script('LOAD', source)));
    return {
      part: 1 / PERMITS,
      withLock: async (key, work) => {
        const owner = randomUUID();
        await retryUntilGranted(
          async () => (await redis.evalsha(TAKE_PERMIT.sha1, 1, key, owner, PERMITS, terms.ttlMs)) === 1,
          terms,
        );
        try {
          await work();
        } finally {
          await redis.evalsha(RETURN_PERMIT.sha1, 1, key, owner);
        }
      },
      close: () => redis.disconnect(),
    };
  },
};

function script(source: string): { readonly source: string; readonly sha1: string } {
  return { source, sha1: createHash('sha1').update(source).digest('hex') };
}

interface RedisSemaphore {
  Semaphore: new (
    client: Redis,
    key: string,
    limit: number,
    options: { lockTimeout: number; acquireTimeout: number; retryInterval: number },
  ) => { acquire(): Promise<void>; release(): Promise<void> };
}
