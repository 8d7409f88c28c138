import assert from 'node:assert/strict';
import { type LeaseStore, getEndOfTrust } from '../core/index.js';
import {
  LONG_TTL_MS,
  MAX_WAIT_MS,
  waitForValue,
  type CheckGroup,
  repeatUntil,
  type CheckContext,
  type Grant,
  toGrant,
} from './check-context.js';

const CLIENT_COUNT = 5;
const CONTENDER_COUNT = 50;
const ROUND_COUNT = 5;
const TOKEN_UPPER_BOUND = 2n ** 52n;

export const grantChecks: CheckGroup = {
  'grants a free key, with a token from 1 to below 2^52': async (context) => {
    const { token } = await context.acquire(await context.openStore(), context.newKey());
    assert.equal(typeof token, 'bigint', 'a fencing token is a bigint');
    assert.ok(token > 0n && token < TOKEN_UPPER_BOUND, `the token was ${token}`);
  },

  'refuses a key that another owner has, and says how much of the lease is left, or null': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    const { ttlMs } = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
    for (const client of [store, otherStore]) {
      const { attempt } = await context.tryAcquire(client, key);
      assert.ok(!attempt.acquired, 'two owners have the key');
      const { retryAfterMs, holder } = attempt;
      assert.ok(
        retryAfterMs === null || (retryAfterMs >= 0 && retryAfterMs <= ttlMs + 1_000),
        `retryAfterMs was ${retryAfterMs} under a lease of ${ttlMs} ms`,
      );
      assert.equal(holder?.pid ?? process.pid, process.pid, 'the holder is somebody else');
    }
  },

  'grants a key to one of fifty who ask at the same time, over five clients': async (context) => {
    const stores = await Promise.all(Array.from({ length: CLIENT_COUNT }, () => context.openStore()));
    const key = context.newKey();
    let lastToken = 0n;
    for (let round = 0; round < ROUND_COUNT; round += 1) {
      const { store, owner, token } = await waitForValue('nobody was granted a free key', () =>
        acquireConcurrently(context, stores, key),
      );
      assert.ok(token > lastToken, `token ${token} came after ${lastToken}`);
      lastToken = token;
      assert.equal(await store.release(key, owner), true, 'the winner could not release');
    }
  },

  'grants the key again to the owner who has it, with a full time to live and no lesser token': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    const firstGrant = await context.acquire(store, key);
    const { owner, token, ttlMs } = await context.acquire(store, key, { owner: firstGrant.owner, ttlMs: LONG_TTL_MS });
    assert.ok(token >= firstGrant.token, `token ${token} came after ${firstGrant.token}`);
    // Where leases end with a session, a second grant does not prolong the lease. The loop then renews it.
    const isLeaseProlonged = ttlMs > firstGrant.ttlMs * 2;
    await repeatUntil(firstGrant.answeredAt + firstGrant.ttlMs * 1.5, async () => {
      if (!isLeaseProlonged) assert.equal(await store.renew(key, owner, ttlMs), true, 'the holder could not renew');
      await context.assertRefused(otherStore, key);
    });
    // One release frees the key, although the owner acquired it twice.
    assert.equal(await store.release(key, owner), true, 'one release has to do');
    await context.acquire(otherStore, key);
  },

  'gives every acquisition a greater token, whichever client asks': async (context) => {
    const stores = await context.openTwoStores();
    const key = context.newKey();
    let lastToken = 0n;
    for (const store of Array.from({ length: 10 }, () => stores).flat()) {
      const { owner, token } = await context.acquire(store, key);
      assert.ok(token > lastToken, `token ${token} came after ${lastToken}`);
      lastToken = token;
      await store.release(key, owner);
    }
  },

  'keeps a key for its time to live, frees it when its holder is gone, and raises the token': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    const formerGrant = await context.acquire(store, key);
    const presentGrant = await acquireFromDeadHolder(context, formerGrant, otherStore);
    assert.ok(presentGrant.token > formerGrant.token, `token ${presentGrant.token} came after ${formerGrant.token}`);
    const thirdStore = await context.openStore();
    assert.equal((await thirdStore.isHeldBy?.(key, formerGrant.owner)) ?? false, false, 'a former owner has the key');
    assert.equal(await thirdStore.renew(key, formerGrant.owner, formerGrant.ttlMs), false, 'a former owner renewed');
    assert.equal(await thirdStore.release(key, formerGrant.owner), false, 'a former owner released');
    await context.assertRefused(thirdStore, key);
    assert.equal(await otherStore.release(key, presentGrant.owner), true, 'the present owner has lost the key');
  },

  'takes a time to live in fractions of a millisecond, and the longest that there is': async (context) => {
    const [store, otherStore] = await context.openTwoStores();
    for (const ttlMs of [LONG_TTL_MS + 0.123_456, 2 ** 31 - 1]) {
      const key = context.newKey();
      const lease = await context.acquire(store, key, { ttlMs });
      await context.assertRefused(otherStore, key, { ttlMs });
      assert.equal(await store.renew(key, lease.owner, lease.ttlMs), true, `no renewal for ${lease.ttlMs} ms`);
      assert.equal(await store.release(key, lease.owner), true, 'the owner could not release');
    }
  },
};

async function acquireConcurrently(
  context: CheckContext,
  stores: readonly LeaseStore[],
  key: string,
): Promise<Grant | undefined> {
  const contendingStores = Array.from({ length: CONTENDER_COUNT / CLIENT_COUNT }, () => stores).flat();
  const answers = await Promise.all(
    contendingStores.map((store) => context.tryAcquire(store, key, { ttlMs: LONG_TTL_MS })),
  );
  const grants = answers.map(toGrant).filter((grant) => grant !== undefined);
  assert.ok(grants.length <= 1, `${grants.length} owners have the key at the same time`);
  return grants[0];
}

/** Acquires a key whose holder no longer renews. Closes the holder's store first where leases end with a session. */
async function acquireFromDeadHolder(context: CheckContext, formerGrant: Grant, nextStore: LeaseStore): Promise<Grant> {
  const { store, key } = formerGrant;
  const isBoundToSession = (store.traits?.endsWith ?? 'ttl') !== 'ttl';
  if (isBoundToSession) await store.close();
  assert.ok(formerGrant.ttlMs < MAX_WAIT_MS, `shortTtlMs is ${formerGrant.ttlMs}, too long for these checks`);
  const presentGrant = await context.acquireEventually(nextStore, key, { ttlMs: LONG_TTL_MS });
  if (!isBoundToSession) assertKeptForTtl(formerGrant, presentGrant.answeredAt);
  return presentGrant;
}

/** Asserts that the next owner was granted the key only after the core had ceased to trust the former lease. */
function assertKeptForTtl({ sentAt, ttlMs }: Grant, endedAt: number): void {
  assert.ok(endedAt >= getEndOfTrust(sentAt, ttlMs), `a lease of ${ttlMs} ms ended after ${endedAt - sentAt} ms`);
}
