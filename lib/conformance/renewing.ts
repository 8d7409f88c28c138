import assert from 'node:assert/strict';
import { LONG_TTL_MS, type CheckGroup, repeatUntil } from './check-context.js';

export const renewalChecks: CheckGroup = {
  'prolongs a lease by renewals': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    const { owner, ttlMs, sentAt } = await context.acquire(store, key);
    await repeatUntil(sentAt + ttlMs * 2.5, async () => {
      assert.equal(await store.renew(key, owner, ttlMs), true, 'the holder could not renew');
      await context.assertRefused(otherStore, key);
    });
    assert.equal(await store.release(key, owner), true, 'the holder had lost the key');
  },

  'renews nothing that was released, or was never there': async (context) => {
    const [store, otherStore] = await context.openTwoStores();
    const [neverAcquiredKey, releasedKey] = [context.newKey(), context.newKey()];
    assert.equal(await store.renew(neverAcquiredKey, context.newOwner(), LONG_TTL_MS), false, 'a renewal made a lease');
    await context.acquire(otherStore, neverAcquiredKey);
    const { owner } = await context.acquire(store, releasedKey);
    await store.release(releasedKey, owner);
    assert.equal(await store.renew(releasedKey, owner, LONG_TTL_MS), false, 'a renewal brought a lease back');
    await context.acquire(otherStore, releasedKey);
  },

  'renews for nobody but the owner': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    const { owner } = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
    for (const client of [store, otherStore]) {
      assert.equal(await client.renew(key, context.newOwner(), LONG_TTL_MS), false, 'a stranger renewed');
    }
    const { shortTtlMs } = context.harness;
    assert.equal(await store.renew(key, owner, shortTtlMs), true, 'the holder has lost the key to a renewal');
    if ((store.traits?.endsWith ?? 'ttl') !== 'ttl') return;
    // The key becomes free before the end of the TTL that the stranger requested.
    await context.acquireEventually(otherStore, key);
  },

  'tells whether an owner has a key, where it can tell, and changes nothing by that': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    const { owner } = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
    assert.equal((await otherStore.isHeldBy?.(key, owner)) ?? true, true, 'the owner has the key');
    for (const [probedKey, probedOwner] of [
      [key, context.newOwner()],
      [context.newKey(), owner],
      [`${key}*`, owner],
      [`${key}' or ''='`, 'nobody: 1/2 or @all --'],
    ] as const) {
      assert.equal(
        (await otherStore.isHeldBy?.(probedKey, probedOwner)) ?? false,
        false,
        `${JSON.stringify(probedOwner)} has no such key`,
      );
    }
    await store.release(key, owner);
    assert.equal((await otherStore.isHeldBy?.(key, owner)) ?? false, false, 'the owner has released the key');
    await context.acquire(otherStore, key);
  },
};
