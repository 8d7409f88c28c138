import assert from 'node:assert/strict';
import { assertSettlesInTime, LONG_TTL_MS, type CheckGroup } from './check-context.js';

export const releaseChecks: CheckGroup = {
  'frees a key for every client as soon as its release is answered': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    const { owner } = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
    assert.equal(await store.release(key, owner), true, 'the owner could not release');
    await context.acquire(otherStore, key);
  },

  'changes nothing when a stranger releases, and says false': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    const { owner, ttlMs } = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
    for (const client of [store, otherStore]) {
      assert.equal(await client.release(key, context.newOwner()), false, 'a stranger released the key');
      assert.equal(
        await client.release(context.newKey(), context.newOwner()),
        false,
        'a key was released that nobody had',
      );
    }
    assert.equal(await store.renew(key, owner, ttlMs), true, 'the holder has lost the key to a stranger');
    await context.assertRefused(otherStore, key);
  },

  'changes nothing when a former owner releases again, and says false': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    const formerGrant = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
    await store.release(key, formerGrant.owner);
    assert.equal(await store.release(key, formerGrant.owner), false, 'a key was released twice');
    const presentGrant = await context.acquire(otherStore, key, { ttlMs: LONG_TTL_MS });
    assert.equal(await store.release(key, formerGrant.owner), false, 'a former owner released the key');
    await context.assertRefused(store, key);
    assert.equal(await otherStore.release(key, presentGrant.owner), true, 'the present owner has lost the key');
  },

  'closes as often as it is told, and leaves other clients alone': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    const { owner, ttlMs } = await context.acquire(otherStore, key, { ttlMs: LONG_TTL_MS });
    await Promise.all([store.close(), store.close()]);
    await store.close();
    assert.equal(await otherStore.renew(key, owner, ttlMs), true, 'another client has lost its key');
    assert.equal(await otherStore.release(key, owner), true, 'another client has lost its key');
  },

  'settles all that is under way when it closes': async (context) => {
    const store = await context.openStore();
    const { key, owner, ttlMs } = await context.acquire(store, context.newKey());
    const requests = Array.from({ length: 10 }, () => [
      context.tryAcquire(store, context.newKey()),
      store.renew(key, owner, ttlMs),
      store.release(key, context.newOwner()),
    ]).flat();
    const settledRequests = Promise.allSettled(requests);
    await assertSettlesInTime('the store did not close', store.close());
    await assertSettlesInTime('a request did not settle', settledRequests);
  },
};
