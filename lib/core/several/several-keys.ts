import type { LockHandle } from '../holding/lock-handle.js';
import { runUnder } from '../holding/run-under.js';
import type { AcquireOptions, ResolvedOptions } from '../options/lock-options.js';
import { JoinedSignal } from '../kit/joined-signal.js';
import { Deadline } from '../time/deadline.js';
import { type Clock, systemClock } from '../time/timers.js';
import { LockSet } from './lock-set.js';
import { type ResolvedKey, resolveKeys, type WantedKey } from './wanted-keys.js';

/** Takes several keys together, for a service that takes single ones. */
export abstract class SeveralKeys {
  readonly #clock: Clock;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  abstract resolve(options?: AcquireOptions): Readonly<ResolvedOptions>;
  abstract acquire(key: string, options?: AcquireOptions): Promise<LockHandle>;
  abstract tryAcquire(key: string, options?: AcquireOptions): Promise<LockHandle | null>;

  /**
   * All of `keys` or none, waiting at most `waitMs` altogether. Those that are free are taken at once, in the time of one
   * round trip. For the first one that is not, we wait and hold smaller keys only: callers who all take their keys like
   * this never wait for each other in a circle, whatever they want of each. A key that comes twice is taken once, with
   * the stronger claim. Whoever calls this releases the set, best by `await using`.
   * @throws as `acquire` does; LockLostError one was lost while we waited for another; LockConfigurationError for no keys
   * at all, and for a key with two claims neither of which covers the other. Nothing stays behind.
   */
  async acquireAll(keys: readonly WantedKey[], options?: AcquireOptions): Promise<LockSet> {
    const resolved = this.resolve(options);
    const wanted = resolveKeys(keys, resolved, (each) => this.resolve(each));
    const deadline = Deadline.after(resolved.waitMs, this.#clock);
    const taken: LockHandle[] = [];
    try {
      while (taken.length < wanted.length) {
        const rest = wanted.slice(taken.length);
        if (rest.length > 1) taken.push(...(await new LockSet(taken).run(() => this.#takeFree(rest))));
        const busy = wanted[taken.length];
        if (busy) taken.push(await this.#wait(busy, deadline, new LockSet([...taken])));
      }
      const set = new LockSet(taken);
      set.throwIfLost();
      return set;
    } catch (error) {
      await giveUp(taken);
      throw error;
    }
  }

  /** Runs `work` under the locks of all `keys`, see `acquireAll`, and gives them back. @throws as `withLock` does */
  async withLocks<T>(
    keys: readonly WantedKey[],
    work: (locks: LockSet) => Promise<T> | T,
    options?: AcquireOptions,
  ): Promise<T> {
    const set = await this.acquireAll(keys, options);
    return runUnder(set, () => work(set), this.resolve(options));
  }

  /** Takes those before the first that is not free, and gives back what was taken behind it. Why it is not, `#wait` finds. */
  async #takeFree(keys: readonly ResolvedKey[]): Promise<LockHandle[]> {
    const attempts = keys.map(({ key, options }) => this.tryAcquire(key, options).catch(() => null));
    const found = await Promise.all(attempts);
    const busy = found.indexOf(null);
    const free = busy < 0 ? found : found.slice(0, busy);
    await giveUp(found.slice(free.length));
    return free.filter((lock) => lock !== null);
  }

  /**
   * In the call tree of the locks that we have, which goes on while the service shuts down. Without one of these the work
   * cannot begin, so its loss ends the wait: the others are not kept for nothing.
   */
  async #wait({ key, options }: ResolvedKey, { remainingMs }: Deadline, taken: LockSet): Promise<LockHandle> {
    const waiting = { ...options, waitMs: remainingMs };
    if (taken.locks.length === 0) return this.acquire(key, waiting);
    const { signal: lost } = taken;
    const joined = options.signal ? new JoinedSignal([options.signal, lost]) : undefined;
    const signal = joined?.signal ?? lost;
    try {
      return await taken.run(() => this.acquire(key, { ...waiting, signal }));
    } finally {
      joined?.end();
      taken.unlisten();
    }
  }
}

/** Work never begins under these, so nothing of them stays closed. */
async function giveUp(taken: readonly (LockHandle | null)[]): Promise<void> {
  const locks = taken.filter((lock) => lock !== null);
  for (const lock of locks) lock.forgo();
  await new LockSet(locks).release();
}
