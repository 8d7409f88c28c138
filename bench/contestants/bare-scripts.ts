import { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import { leaseKeyOf } from '../../lib/backends/redis/scripts/redis-values.js';
import type { RedisScript } from '../../lib/backends/redis/scripts/redis-script.js';
import { COMPARE_AND_DELETE, SET_IF_FREE } from '../../lib/backends/redis/scripts/lease-scripts.js';
import { type QueueScripts, queueScripts } from '../../lib/backends/redis/scripts/queue-scripts.js';
import type { Contestant } from './contestant.js';
import { urlOf } from './url-of.js';

const METADATA = 'a-host|12345|';

/** Our scripts, called by the raw client on keys that nobody else wants: as fast as their mode could be if we did nothing else. */
export const BARE_SCRIPTS: readonly Contestant[] = [
  bare('queue', ({ exclusive: { acquire, release } }) => ({
    scripts: [acquire, release],
    take: (redis, key, owner, ttlMs) =>
      redis.evalsha(acquire.sha1, 1, leaseKeyOf('lock', key), owner, ttlMs, `|${METADATA}`),
    give: (redis, key, owner) => redis.evalsha(release.sha1, 1, leaseKeyOf('lock', key), owner),
  })),
  bare('plain', () => ({
    scripts: [SET_IF_FREE, COMPARE_AND_DELETE],
    take: (redis, key, owner, ttlMs) => redis.evalsha(SET_IF_FREE.sha1, 1, key, `${owner}|${METADATA}`, ttlMs),
    give: (redis, key, owner) => redis.evalsha(COMPARE_AND_DELETE.sha1, 1, key, owner),
  })),
];

interface Calls {
  readonly scripts: readonly RedisScript[];
  readonly take: (redis: Redis, key: string, owner: string, ttlMs: number) => Promise<unknown>;
  readonly give: (redis: Redis, key: string, owner: string) => Promise<unknown>;
}

function bare(mode: string, callsOf: (scripts: QueueScripts) => Calls): Contestant {
  const { scripts, take, give } = callsOf(queueScripts({ sharded: false, declaresKeys: false }));
  return {
    name: `bare scripts of ${mode}`,
    renews: false,
    alone: true,
    connect: async (to, { ttlMs }) => {
      const redis = new Redis(urlOf(to));
      await Promise.all(scripts.map(({ source }) => redis.script('LOAD', source)));
      return {
        withLock: async (key, work) => {
          const owner = randomUUID();
          await take(redis, key, owner, ttlMs);
          try {
            await work();
          } finally {
            await give(redis, key, owner);
          }
        },
        close: () => redis.disconnect(),
      };
    },
  };
}
