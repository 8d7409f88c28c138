import { LockConfigurationError } from '../contract/errors.js';
import { assertKey } from '../contract/key.js';
import type { LockHandle } from '../holding/lock-handle.js';
import type { AcquireOptions, ResolvedOptions } from '../lock-options.js';
import { Deadline } from '../time/deadline.js';
import { type Clock, systemClock } from '../time/timers.js';
import { LockSet } from './lock-set.js';

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
   * this never wait for each other in a circle. Whoever calls this releases the set, best by `await using`.
   * @throws as `acquire` does; LockConfigurationError for no keys at all. Nothing stays behind.
   */
  async acquireAll(keys: readonly string[], options?: AcquireOptions): Promise<LockSet> {
    const wanted = sorted(keys);
    const resolved = this.resolve(options);
    const deadline = Deadline.after(resolved.waitMs, this.#clock);
    const taken: LockHandle[] = [];
    try {
      while (taken.length < wanted.length) {
        const rest = wanted.slice(taken.length);
        if (rest.length > 1) taken.push(...(await this.#takeFree(rest, resolved)));
        const busy = wanted[taken.length];
        if (busy !== undefined) taken.push(await this.#wait(busy, resolved, deadline, taken.at(-1)));
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
    keys: readonly string[],
    work: (locks: LockSet) => Promise<T> | T,
    options?: AcquireOptions,
  ): Promise<T> {
    const set = await this.acquireAll(keys, options);
    return set.during(() => work(set), this.resolve(options));
  }

  /** Takes those before the first that is not free, and gives back what was taken behind it. Why it is not, `#wait` finds. */
  async #takeFree(keys: readonly string[], options: ResolvedOptions): Promise<LockHandle[]> {
    const attempts = keys.map((key) => this.tryAcquire(key, options).catch(() => null));
    const found = await Promise.all(attempts);
    const busy = found.indexOf(null);
    const free = busy < 0 ? found : found.slice(0, busy);
    await giveUp(found.slice(free.length));
    return free.filter((lock) => lock !== null);
  }

  /** In the call tree of the locks that we have, which goes on while the service shuts down. */
  #wait(key: string, options: ResolvedOptions, { remainingMs }: Deadline, around?: LockHandle): Promise<LockHandle> {
    const acquire = (): Promise<LockHandle> => this.acquire(key, { ...options, waitMs: remainingMs });
    return around ? around.run(acquire) : acquire();
  }
}

/** Work never begins under these, so nothing of them stays closed. */
async function giveUp(taken: readonly (LockHandle | null)[]): Promise<void> {
  const locks = taken.filter((lock) => lock !== null);
  for (const lock of locks) lock.forgo();
  await new LockSet(locks).release();
}

/** @throws LockConfigurationError */
function sorted(keys: readonly string[]): readonly string[] {
  const given: unknown = keys;
  if (!Array.isArray(given) || given.length === 0) {
    throw new LockConfigurationError('several locks need a list of one key or more', 'keys');
  }
  for (const key of keys) assertKey(key);
  return [...new Set(keys)].toSorted();
}
