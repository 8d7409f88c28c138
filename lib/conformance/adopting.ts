import assert from 'node:assert/strict';
import type { LeaseAttempt, LeaseStore } from '../core/index.js';
import { type CheckGroup, type Grant, LONG_TTL_MS } from './check-context.js';

const ADOPTER_COUNT = 5;

/** Checks for stores with `adopt`, by which a holder's key passes to another owner. */
export const adoptionChecks: CheckGroup = {
  'passes a key to one of several adopters, with its token, and ends the former lease': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    if (!store.adopt) return;
    const grant = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
    assert.equal(await passOn(store, grant), true, 'the holder could not pass its key on');
    await context.assertRefused(otherStore, key);
    const owners = Array.from({ length: ADOPTER_COUNT }, () => context.newOwner());
    const attempts = await Promise.all(owners.map((owner) => adopt(otherStore, grant, owner)));
    const adopters = owners.filter((_, i) => attempts[i]?.acquired === true);
    assert.equal(adopters.length, 1, 'one of several adopters gets the key');
    const adoption = attempts.find(({ acquired }) => acquired);
    assert.ok(adoption?.acquired && adoption.fencingToken === grant.token, 'the token changed');
    await context.assertRefused(store, key);
    assert.equal(await store.release(key, grant.owner), false, 'the former owner released the key');
    assert.equal(await otherStore.release(key, adopters[0] ?? ''), true, 'the adopter has lost the key');
    const { token } = await context.acquire(store, key);
    assert.ok(token > grant.token, `token ${token} came after ${grant.token}`);
  },

  'grants an adopter nothing when the former owner has lost the key': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    if (!store.adopt) return;
    const grant = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
    await store.release(key, grant.owner);
    assert.equal((await adopt(otherStore, grant, context.newOwner())).acquired, false, 'a free key was adopted');
    await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
    const attempt = await adopt(otherStore, grant, context.newOwner());
    assert.equal(attempt.acquired, false, 'the key of another owner was adopted');
  },
};

function passOn(store: LeaseStore, { key, owner }: Grant): Promise<boolean> {
  return store.passOn ? store.passOn(key, owner, LONG_TTL_MS) : store.renew(key, owner, LONG_TTL_MS);
}

async function adopt(
  store: LeaseStore,
  { key, owner: formerOwner, token }: Grant,
  owner: string,
): Promise<LeaseAttempt> {
  const metadata = { host: 'somewhere', pid: process.pid };
  const adoption = store.adopt?.(
    key,
    { owner: formerOwner, fencingToken: token },
    { owner, ttlMs: LONG_TTL_MS, metadata },
  );
  return adoption ?? { acquired: false, retryAfterMs: null };
}
