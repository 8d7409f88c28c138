import assert from 'node:assert/strict';
import { isLockError, type LeaseStore, type LockConfigurationError } from '../core/index.js';
import { LONG_TTL_MS, type CheckGroup } from './check-context.js';

export const lookupChecks: CheckGroup = {
  'tells who has a key, where it can tell, and changes nothing by that': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    const { owner, token, ttlMs } = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
    if (!otherStore.look) return;
    const { holder } = await otherStore.look(key);
    assert.deepEqual([holder?.owner, holder?.host], [owner, 'somewhere'], 'the owner has the key');
    assert.equal(holder?.fencingToken ?? token, token, 'the token is another one');
    const { leftMs = ttlMs } = holder ?? {};
    assert.ok(leftMs > 0 && leftMs <= ttlMs * 2, `${leftMs} ms are left of ${ttlMs}`);
    assert.equal((await otherStore.look(context.newKey())).holder, undefined, 'nobody has another key');
    await store.release(key, owner);
    assert.equal((await otherStore.look(key)).holder, undefined, 'the owner has released the key');
    await context.acquire(otherStore, key);
  },

  'evicts the owner that it is told, where it can evict, and no other': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    const evict = getEvictFunction(otherStore);
    if (!evict) return;
    const formerGrant = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
    assert.equal(await evict(key, context.newOwner()), false, 'an owner was evicted who had nothing');
    assert.equal(await store.renew(key, formerGrant.owner, LONG_TTL_MS), true, 'the holder has lost the key');
    const evictionResult = await evict(key, formerGrant.owner).catch(catchConfigurationError);
    if (isLockError(evictionResult, 'LOCK_CONFIGURATION')) {
      assert.equal(await store.renew(key, formerGrant.owner, LONG_TTL_MS), true, 'an eviction was refused and done');
      return;
    }
    assert.equal(evictionResult, true, 'the holder was not evicted');
    const presentGrant = await context.acquireEventually(otherStore, key, { ttlMs: LONG_TTL_MS });
    assert.ok(presentGrant.token > formerGrant.token, `token ${presentGrant.token} came after ${formerGrant.token}`);
    assert.equal(await store.renew(key, formerGrant.owner, LONG_TTL_MS), false, 'a former owner renewed');
    assert.equal(await evict(key, formerGrant.owner), false, 'a former owner was evicted again');
    assert.equal(await otherStore.release(key, presentGrant.owner), true, 'the present owner has lost the key');
  },

  'lists the keys that are held, where it can list': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    if (!otherStore.keys) return;
    const { owner } = await context.acquire(store, `${key} held`, { ttlMs: LONG_TTL_MS });
    assert.deepEqual(await listKeys(otherStore, key), [`${key} held`]);
    assert.deepEqual(await listKeys(otherStore, `${key} held too`), []);
    await store.release(`${key} held`, owner);
    assert.deepEqual(await listKeys(otherStore, key), [], 'the key is free');
  },
};

/** Returns `error` if it is the error by which a store refuses to evict. Throws any other error. */
function catchConfigurationError(error: unknown): LockConfigurationError {
  if (isLockError(error, 'LOCK_CONFIGURATION')) return error;
  throw error;
}

/** Returns the function by which the core evicts from this store; `undefined` where the core refuses to. */
function getEvictFunction(store: LeaseStore): ((key: string, owner: string) => Promise<boolean>) | undefined {
  if (!store.look) return undefined;
  if (store.evict) return (key, owner) => store.evict?.(key, owner) ?? Promise.resolve(false);
  return (store.traits?.endsWith ?? 'ttl') === 'ttl' ? (key, owner) => store.release(key, owner) : undefined;
}

async function listKeys(store: LeaseStore, prefix: string): Promise<string[]> {
  const listedKeys = [];
  for await (const page of store.keys?.(prefix) ?? []) listedKeys.push(...page);
  return listedKeys;
}
