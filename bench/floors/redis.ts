import { Redis } from 'ioredis';
import { createHash, randomUUID } from 'node:crypto';
import { type Contestant, retried } from '../contestants/contestant.js';
import { urlOf } from '../contestants/url-of.js';

const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`;
const SHA = createHash('sha1').update(RELEASE).digest('hex');

/** SET NX PX, and EVALSHA of compare-and-delete. */
export const REDIS_FLOOR: Contestant = {
  name: 'floor: SET NX PX + EVALSHA',
  renews: false,
  connect: async (to, terms) => {
    const redis = new Redis(urlOf(to));
    await redis.script('LOAD', RELEASE);
    return {
      withLock: async (key, work) => {
        const owner = randomUUID();
        await retried(async () => (await redis.set(key, owner, 'PX', terms.ttlMs, 'NX')) === 'OK', terms);
        try {
          await work();
        } finally {
          await redis.evalsha(SHA, 1, key, owner);
        }
      },
      close: () => redis.disconnect(),
    };
  },
};

/** The same on all masters at once; the lock is had where a majority agrees. */
export const REDLOCK_FLOOR: Contestant = {
  name: 'floor: 5 × SET NX PX + EVALSHA',
  renews: false,
  connect: async (to, terms) => {
    if (to.backend !== 'redlock') throw new Error(`${to.backend} is not Redlock`);
    const masters = to.urls.map((url) => new Redis(url));
    await Promise.all(masters.map((redis) => redis.script('LOAD', RELEASE)));
    const free = (key: string, owner: string): Promise<unknown> =>
      Promise.all(masters.map((redis) => redis.evalsha(SHA, 1, key, owner)));
    return {
      withLock: async (key, work) => {
        const owner = randomUUID();
        await retried(async () => {
          const votes = await Promise.all(masters.map((redis) => redis.set(key, owner, 'PX', terms.ttlMs, 'NX')));
          if (votes.filter((vote) => vote === 'OK').length > masters.length / 2) return true;
          await free(key, owner);
          return false;
        }, terms);
        try {
          await work();
        } finally {
          await free(key, owner);
        }
      },
      close: () => masters.forEach((redis) => redis.disconnect()),
    };
  },
};
