import assert from 'node:assert/strict';
import { type LeaseStore, pause, systemClock } from '../core/index.js';
import {
  assertSettlesInTime,
  LONG_TTL_MS,
  MAX_WAIT_MS,
  type CheckGroup,
  type CheckContext,
  type Grant,
  toGrant,
} from './check-context.js';

/** Checks of `watch`. A store without `watch` passes them, too. */
export const watchChecks: CheckGroup = {
  'lets in who watches a key, and asks when woken or now and then': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    const formerGrant = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
    const waiters = [new Waiter(context, otherStore, key), new Waiter(context, await context.openStore(), key)];
    for (const waiter of waiters) assert.equal(await waiter.tryAcquire(), undefined, 'two owners have the key');
    const tokenPromises = waiters.map(async (waiter) => {
      const grant = await waiter.acquire();
      assert.equal(await grant.store.release(key, grant.owner), true, 'the waiter had lost the key');
      return grant.token;
    });
    assert.equal(await store.release(key, formerGrant.owner), true, 'the holder had lost the key');
    const tokens = await Promise.all(tokenPromises);
    assert.equal(new Set([formerGrant.token, ...tokens]).size, 3, 'two owners have the same token');
  },

  'grants nothing by a watch alone': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    const formerGrant = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
    const watcher = new Waiter(context, otherStore, key);
    await store.release(key, formerGrant.owner);
    await context.acquire(await context.openStore(), key, { ttlMs: LONG_TTL_MS });
    assert.equal((await store.isHeldBy?.(key, watcher.owner)) ?? false, false, 'who only watched has the key');
    assert.equal(await otherStore.renew(key, watcher.owner, LONG_TTL_MS), false, 'who only watched has the key');
    watcher.end();
  },

  'wakes who watches a key when it is released just after its lease has ended': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    if (!otherStore.watch || (store.traits?.endsWith ?? 'ttl') !== 'ttl') return;
    const formerGrant = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
    // The refusal tells the waiter of the long lease. Hence the waiter does not poll.
    const waiter = new Waiter(context, otherStore, key);
    assert.equal(await waiter.tryAcquire(), undefined, 'two owners have the key');
    const { shortTtlMs } = context.harness;
    assert.equal(await store.renew(key, formerGrant.owner, shortTtlMs), true, 'the holder could not renew');
    await pause(systemClock, shortTtlMs + LATE_RELEASE_MS);
    await store.release(key, formerGrant.owner);
    await assertSettlesInTime('nobody woke the waiter', waiter.waitForWakeUp(), MAX_WAIT_MS / 2);
    await waiter.acquire();
  },

  'calls nobody whose watch has ended, and passes such an owner over': async (context) => {
    const { store, otherStore, key } = await context.openTwoStoresAndKey();
    const formerGrant = await context.acquire(store, key, { ttlMs: LONG_TTL_MS });
    const departedWaiter = new Waiter(context, otherStore, key);
    await departedWaiter.tryAcquire();
    departedWaiter.end();
    const { wakeUpCount } = departedWaiter;
    // The core, too, releases the key for a waiting caller that gives up.
    assert.equal(await otherStore.release(key, departedWaiter.owner), false, 'two owners have the key');
    const waiter = new Waiter(context, otherStore, key);
    await waiter.tryAcquire();
    await store.release(key, formerGrant.owner);
    await waiter.acquire();
    assert.equal(departedWaiter.wakeUpCount, wakeUpCount, 'somebody was woken after the end of the watch');
  },
};

const RETRY_INTERVAL_MS = 50;
/** Milliseconds between the end of a lease and its release, which must wake waiters all the same. */
const LATE_RELEASE_MS = 20;

class Waiter {
  readonly owner: string;
  wakeUpCount = 0;
  #onWake = (): void => undefined;
  readonly #unwatch: () => void;

  constructor(
    private readonly context: CheckContext,
    private readonly store: LeaseStore,
    private readonly key: string,
  ) {
    this.owner = context.newOwner();
    const wake = (): void => {
      this.wakeUpCount += 1;
      this.#onWake();
    };
    this.#unwatch = store.watch?.(key, this.owner, wake) ?? (() => undefined);
  }

  async tryAcquire(): Promise<Grant | undefined> {
    const { owner } = this;
    return toGrant(await this.context.tryAcquire(this.store, this.key, { owner, ttlMs: LONG_TTL_MS }));
  }

  /** Tries until the key is granted, then ends the watch. */
  async acquire(): Promise<Grant> {
    const deadline = performance.now() + MAX_WAIT_MS;
    for (;;) {
      const wakeUpOrTimeout = new Promise<void>((resolve) => {
        this.#onWake = resolve;
        setTimeout(resolve, RETRY_INTERVAL_MS);
      });
      const grant = await this.tryAcquire();
      if (grant) {
        this.end();
        return grant;
      }
      assert.ok(performance.now() < deadline, `a waiter did not get in within ${MAX_WAIT_MS} ms`);
      await wakeUpOrTimeout;
    }
  }

  waitForWakeUp(): Promise<void> {
    return new Promise((resolve) => {
      this.#onWake = resolve;
      if (this.wakeUpCount > 0) resolve();
    });
  }

  end(): void {
    this.#unwatch();
  }
}
