import { Redis } from 'ioredis';
import { createHash, randomUUID } from 'node:crypto';
import { type Contestant, retryUntilGranted } from '../contestants/contestant.js';
import { urlOf } from '../contestants/url-of.js';

const RELEASE_SCRIPT = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`;
const RELEASE_SHA1 = createHash('sha1').update(RELEASE_SCRIPT).digest('hex');

/** Floor of Redis: `SET NX PX`, and `EVALSHA` of compare-and-delete. */
export const REDIS_FLOOR: Contestant = {
  name: 'floor: SET NX PX + EVALSHA',
  renewsLease: false,
  commandsBesideScripts: ['set'],
  connect: async (to, terms) => {
    const redis = new Redis(urlOf(to));
    await redis.script('LOAD', RELEASE_SCRIPT);
    return {
      withLock: async (key, work) => {
        const owner = randomUUID();
        await retryUntilGranted(async () => (await redis.set(key, owner, 'PX', terms.ttlMs, 'NX')) === 'OK', terms);
        try {
          await work();
        } finally {
          await redis.evalsha(RELEASE_SHA1, 1, key, owner);
        }
      },
      close: () => redis.disconnect(),
    };
  },
};

/** Floor of Redlock: the same calls on all masters at once. A majority grants the lock. */
export const REDLOCK_FLOOR: Contestant = {
  name: 'floor: 5 × SET NX PX + EVALSHA',
  renewsLease: false,
  connect: async (to, terms) => {
    if (to.backend !== 'redlock') throw new Error(`${to.backend} is not Redlock`);
    const masters = to.urls.map((url) => new Redis(url));
    await Promise.all(masters.map((redis) => redis.script('LOAD', RELEASE_SCRIPT)));
    const releaseOnAll = (key: string, owner: string): Promise<unknown> =>
      Promise.all(masters.map((redis) => redis.evalsha(RELEASE_SHA1, 1, key, owner)));
    return {
      withLock: async (key, work) => {
        const owner = randomUUID();
        await retryUntilGranted(async () => {
          const votes = await Promise.all(masters.map((redis) => redis.set(key, owner, 'PX', terms.ttlMs, 'NX')));
          if (votes.filter((vote) => vote === 'OK').length > masters.length / 2) return true;
          await releaseOnAll(key, owner);
          return false;
        }, terms);
        try {
          await work();
        } finally {
          await releaseOnAll(key, owner);
        }
      },
      close: () => masters.forEach((redis) => redis.disconnect()),
    };
  },
};
