import type { Locker } from '../acquiring/locker.js';
import type { LockHandle } from '../holding/lock-handle.js';
import { runUnderLock } from '../holding/run-under.js';
import type { AcquireOptions } from '../options/lock-options.js';
import { JoinedSignal } from '../kit/joined-signal.js';
import { Deadline } from '../time/deadline.js';
import type { Clock } from '../time/timers.js';
import { LockSet } from './lock-set.js';
import { type ResolvedKey, resolveKeys, type WantedKey } from './wanted-keys.js';

/**
 * Takes several keys together. Free keys are taken at once, in the time of one round trip. While the caller waits for the
 * first key that is not free, it holds smaller keys only. Callers who all do this never wait for each other in a circle.
 */
export class SeveralKeys {
  constructor(
    private readonly locker: Locker,
    private readonly clock: Clock,
  ) {}

  /** See `LockService.acquireAll`. */
  async acquireAll(keys: readonly WantedKey[], options?: AcquireOptions): Promise<LockSet> {
    const resolved = this.locker.resolve(options);
    const wanted = resolveKeys(keys, resolved, (each) => this.locker.resolve(each));
    const deadline = Deadline.after(resolved.waitMs, this.clock);
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

  /** See `LockService.withLocks`. */
  async withLocks<T>(
    keys: readonly WantedKey[],
    work: (locks: LockSet) => Promise<T> | T,
    options?: AcquireOptions,
  ): Promise<T> {
    const set = await this.acquireAll(keys, options);
    return runUnderLock(set, () => work(set), this.locker.resolve(options));
  }

  /** Takes the keys before the first one that is not free, and releases what was taken behind it. */
  async #takeFree(keys: readonly ResolvedKey[]): Promise<LockHandle[]> {
    const attempts = keys.map(({ key, options }) => this.locker.tryAcquire(key, options).catch(() => null));
    const found = await Promise.all(attempts);
    const busy = found.indexOf(null);
    const free = busy < 0 ? found : found.slice(0, busy);
    await giveUp(found.slice(free.length));
    return free.filter((lock) => lock !== null);
  }

  /**
   * Waits for a key in the call tree of the locks that are taken, which a service that shuts down still lets in. The
   * loss of one of them ends the wait: without it the work cannot begin, and the others would be kept for nothing.
   */
  async #wait({ key, options }: ResolvedKey, { remainingMs }: Deadline, taken: LockSet): Promise<LockHandle> {
    const waiting = { ...options, waitMs: remainingMs };
    if (taken.locks.length === 0) return this.locker.acquire(key, waiting);
    const { signal: lost } = taken;
    const joined = options.signal ? new JoinedSignal([options.signal, lost]) : undefined;
    const signal = joined?.signal ?? lost;
    try {
      return await taken.run(() => this.locker.acquire(key, { ...waiting, signal }));
    } finally {
      joined?.end();
      taken.unlisten();
    }
  }
}

/** Releases locks under which no work has begun: none of them stays closed. */
async function giveUp(taken: readonly (LockHandle | null)[]): Promise<void> {
  const locks = taken.filter((lock) => lock !== null);
  for (const lock of locks) lock.markUnused();
  await new LockSet(locks).release();
}
