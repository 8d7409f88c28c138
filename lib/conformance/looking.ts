import assert from 'node:assert/strict';
import { isLockError, type LeaseStore, type LockConfigurationError } from '../core/index.js';
import { LONG_TTL_MS, type Theme } from './trial.js';

/** From outside, by stores that can. */
export const looking: Theme = {
  'tells who has a key, where it can tell, and changes nothing by that': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    const { owner, token, ttlMs } = await trial.win(ours, key, { ttlMs: LONG_TTL_MS });
    if (!theirs.look) return;
    const { holder } = await theirs.look(key);
    assert.deepEqual([holder?.owner, holder?.host], [owner, 'somewhere'], 'the owner has the key');
    assert.equal(holder?.fencingToken ?? token, token, 'the token is another one');
    const { leftMs = ttlMs } = holder ?? {};
    assert.ok(leftMs > 0 && leftMs <= ttlMs * 2, `${leftMs} ms are left of ${ttlMs}`);
    assert.equal((await theirs.look(trial.key())).holder, undefined, 'nobody has another key');
    await ours.release(key, owner);
    assert.equal((await theirs.look(key)).holder, undefined, 'the owner has released the key');
    await trial.win(theirs, key);
  },

  'evicts the owner that it is told, where it can evict, and no other': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    const evict = evictionBy(theirs);
    if (!evict) return;
    const former = await trial.win(ours, key, { ttlMs: LONG_TTL_MS });
    assert.equal(await evict(key, trial.owner()), false, 'an owner was evicted who had nothing');
    assert.equal(await ours.renew(key, former.owner, LONG_TTL_MS), true, 'the holder has lost the key');
    const evicted = await evict(key, former.owner).catch(refusal);
    if (isLockError(evicted, 'LOCK_CONFIGURATION')) {
      assert.equal(await ours.renew(key, former.owner, LONG_TTL_MS), true, 'an eviction was refused and done');
      return;
    }
    assert.equal(evicted, true, 'the holder was not evicted');
    const present = await trial.winSoon(theirs, key, { ttlMs: LONG_TTL_MS });
    assert.ok(present.token > former.token, `token ${present.token} came after ${former.token}`);
    assert.equal(await ours.renew(key, former.owner, LONG_TTL_MS), false, 'a former owner renewed');
    assert.equal(await evict(key, former.owner), false, 'a former owner was evicted again');
    assert.equal(await theirs.release(key, present.owner), true, 'the present owner has lost the key');
  },

  'lists the keys that are held, where it can list': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    if (!theirs.keys) return;
    const { owner } = await trial.win(ours, `${key} held`, { ttlMs: LONG_TTL_MS });
    assert.deepEqual(await listBy(theirs, key), [`${key} held`]);
    assert.deepEqual(await listBy(theirs, `${key} held too`), []);
    await ours.release(`${key} held`, owner);
    assert.deepEqual(await listBy(theirs, key), [], 'the key is free');
  },
};

/** A store may leave an eviction to a person, and say how. */
function refusal(error: unknown): LockConfigurationError {
  if (isLockError(error, 'LOCK_CONFIGURATION')) return error;
  throw error;
}

/** As the core does it. */
function evictionBy(store: LeaseStore): ((key: string, owner: string) => Promise<boolean>) | undefined {
  if (!store.look) return undefined;
  if (store.evict) return (key, owner) => store.evict?.(key, owner) ?? Promise.resolve(false);
  return (store.traits?.endsWith ?? 'ttl') === 'ttl' ? (key, owner) => store.release(key, owner) : undefined;
}

async function listBy(store: LeaseStore, prefix: string): Promise<string[]> {
  const listed = [];
  for await (const page of store.keys?.(prefix) ?? []) listed.push(...page);
  return listed;
}
