import assert from 'node:assert/strict';
import { type LeaseStore, pause, systemClock } from '../core/index.js';
import { inTime, LONG_TTL_MS, PATIENCE_MS, type Theme, type Trial, type Won, wonBy } from './trial.js';

/** A store without `watch` breaks none of them. */
export const watching: Theme = {
  'lets in who watches a key, and asks when woken or now and then': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    const former = await trial.win(ours, key, { ttlMs: LONG_TTL_MS });
    const waiters = [new Waiter(trial, theirs, key), new Waiter(trial, await trial.store(), key)];
    for (const waiter of waiters) assert.equal(await waiter.ask(), undefined, 'two owners have the key');
    const entering = waiters.map(async (waiter) => {
      const { store, owner, token } = await waiter.enter();
      assert.equal(await store.release(key, owner), true, 'the waiter had lost the key');
      return token;
    });
    assert.equal(await ours.release(key, former.owner), true, 'the holder had lost the key');
    const tokens = await Promise.all(entering);
    assert.equal(new Set([former.token, ...tokens]).size, 3, 'two owners have the same token');
  },

  'grants nothing by a watch alone': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    const former = await trial.win(ours, key, { ttlMs: LONG_TTL_MS });
    const watcher = new Waiter(trial, theirs, key);
    await ours.release(key, former.owner);
    await trial.win(await trial.store(), key, { ttlMs: LONG_TTL_MS });
    assert.equal((await ours.isHeldBy?.(key, watcher.owner)) ?? false, false, 'who only watched has the key');
    assert.equal(await theirs.renew(key, watcher.owner, LONG_TTL_MS), false, 'who only watched has the key');
    watcher.end();
  },

  'wakes who watches a key when it is released just after its lease has ended': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    if (!theirs.watch || (ours.traits?.endsWith ?? 'ttl') !== 'ttl') return;
    const former = await trial.win(ours, key, { ttlMs: LONG_TTL_MS });
    // Told of the long lease, the waiter does not look for itself.
    const waiter = new Waiter(trial, theirs, key);
    assert.equal(await waiter.ask(), undefined, 'two owners have the key');
    const { shortTtlMs } = trial.harness;
    assert.equal(await ours.renew(key, former.owner, shortTtlMs), true, 'the holder could not renew');
    await pause(systemClock, shortTtlMs + LATE_MS);
    await ours.release(key, former.owner);
    await inTime('nobody woke the waiter', waiter.woken(), PATIENCE_MS / 2);
    await waiter.enter();
  },

  'calls nobody whose watch has ended, and passes such an owner over': async (trial) => {
    const { ours, theirs, key } = await trial.scene();
    const former = await trial.win(ours, key, { ttlMs: LONG_TTL_MS });
    const departed = new Waiter(trial, theirs, key);
    await departed.ask();
    departed.end();
    const { wakes } = departed;
    // As the core does when somebody has waited, and gives up.
    assert.equal(await theirs.release(key, departed.owner), false, 'two owners have the key');
    const waiter = new Waiter(trial, theirs, key);
    await waiter.ask();
    await ours.release(key, former.owner);
    await waiter.enter();
    assert.equal(departed.wakes, wakes, 'somebody was woken after the end of the watch');
  },
};

const ASK_AGAIN_MS = 50;
/** A release that comes this long after its lease still wakes those who wait. */
const LATE_MS = 20;

/** Watches from the start. */
class Waiter {
  readonly owner: string;
  wakes = 0;
  #onWake = (): void => undefined;
  readonly #unwatch: () => void;

  constructor(
    private readonly trial: Trial,
    private readonly store: LeaseStore,
    private readonly key: string,
  ) {
    this.owner = trial.owner();
    const wake = (): void => {
      this.wakes += 1;
      this.#onWake();
    };
    this.#unwatch = store.watch?.(key, this.owner, wake) ?? (() => undefined);
  }

  async ask(): Promise<Won | undefined> {
    const { owner } = this;
    return wonBy(await this.trial.ask(this.store, this.key, { owner, ttlMs: LONG_TTL_MS }));
  }

  /** As soon as the key is free. The watch ends then. */
  async enter(): Promise<Won> {
    const abandonAt = performance.now() + PATIENCE_MS;
    for (;;) {
      const woken = new Promise<void>((resolve) => {
        this.#onWake = resolve;
        setTimeout(resolve, ASK_AGAIN_MS);
      });
      const won = await this.ask();
      if (won) {
        this.end();
        return won;
      }
      assert.ok(performance.now() < abandonAt, `a waiter did not get in within ${PATIENCE_MS} ms`);
      await woken;
    }
  }

  /** At once where it has been woken already. */
  woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#onWake = resolve;
      if (this.wakes > 0) resolve();
    });
  }

  end(): void {
    this.#unwatch();
  }
}
