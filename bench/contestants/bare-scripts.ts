import { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import { leaseKeyOf } from '../../lib/backends/redis/scripts/redis-values.js';
import type { RedisScript } from '../../lib/backends/redis/scripts/redis-script.js';
import { COMPARE_AND_DELETE, SET_IF_FREE } from '../../lib/backends/redis/scripts/lease-scripts.js';
import { createQueueScripts, type QueueScripts } from '../../lib/backends/redis/scripts/queue-scripts.js';
import type { Contestant } from './contestant.js';
import { urlOf } from './url-of.js';

const METADATA = 'a-host|12345|';

/** Scripts of the library, called by the raw client on keys without contention: the fastest that their mode can be. */
export const BARE_SCRIPTS: readonly Contestant[] = [
  bareScriptsContestant('queue', ({ exclusive: { acquire, release } }) => ({
    scripts: [acquire, release],
    sendAcquire: (redis, key, owner, ttlMs) =>
      redis.evalsha(acquire.sha1, 1, leaseKeyOf('lock', key), owner, ttlMs, `|${METADATA}`),
    sendRelease: (redis, key, owner) => redis.evalsha(release.sha1, 1, leaseKeyOf('lock', key), owner),
  })),
  bareScriptsContestant('plain', () => ({
    scripts: [SET_IF_FREE, COMPARE_AND_DELETE],
    sendAcquire: (redis, key, owner, ttlMs) => redis.evalsha(SET_IF_FREE.sha1, 1, key, `${owner}|${METADATA}`, ttlMs),
    sendRelease: (redis, key, owner) => redis.evalsha(COMPARE_AND_DELETE.sha1, 1, key, owner),
  })),
];

interface ScriptCalls {
  readonly scripts: readonly RedisScript[];
  readonly sendAcquire: (redis: Redis, key: string, owner: string, ttlMs: number) => Promise<unknown>;
  readonly sendRelease: (redis: Redis, key: string, owner: string) => Promise<unknown>;
}

function bareScriptsContestant(mode: string, callsOf: (scripts: QueueScripts) => ScriptCalls): Contestant {
  const { scripts, sendAcquire, sendRelease } = callsOf(createQueueScripts({ isSharded: false, declaresKeys: false }));
  return {
    name: `bare scripts of ${mode}`,
    renewsLease: false,
    commandsBesideScripts: [],
    isUncontendedOnly: true,
    connect: async (to, { ttlMs }) => {
      const redis = new Redis(urlOf(to));
      await Promise.all(scripts.map(({ source }) => redis.script('LOAD', source)));
      return {
        withLock: async (key, work) => {
          const owner = randomUUID();
          await sendAcquire(redis, key, owner, ttlMs);
          try {
            await work();
          } finally {
            await sendRelease(redis, key, owner);
          }
        },
        close: () => redis.disconnect(),
      };
    },
  };
}
