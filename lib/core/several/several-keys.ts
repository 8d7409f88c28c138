import type { Locker } from '../acquiring/locker.js';
import type { LockHandle } from '../holding/lock-handle.js';
import { runUnderLock } from '../holding/run-under.js';
import type { AcquireOptions, ResolvedOptions } from '../options/lock-options.js';
import { JoinedSignal } from '../kit/joined-signal.js';
import { SILENCE_MS } from '../leasing/contender.js';
import { Deadline } from '../time/deadline.js';
import type { Clock } from '../time/timers.js';
import { isFulfilledWithin } from '../time/within.js';
import { LockSet } from './lock-set.js';
import { type ResolvedKey, resolveKeys, type WantedKey } from './wanted-keys.js';

/** Maximum milliseconds for which a caller whose time is over waits for the release of the keys that it has taken. */
const MAX_RELEASE_MS = 1_000;

/**
 * Takes several keys. A caller that waits for a key holds smaller keys only, so that callers never wait for each other
 * in a circle.
 */
export class SeveralKeys {
  constructor(
    private readonly locker: Locker,
    private readonly clock: Clock,
  ) {}

  async acquireAll(keys: readonly WantedKey[], options?: AcquireOptions): Promise<LockSet> {
    const resolvedOptions = this.locker.resolve(options);
    const resolvedKeys = resolveKeys(keys, resolvedOptions, (keyOptions) => this.locker.resolve(keyOptions));
    const deadline = Deadline.after(resolvedOptions.waitMs, this.clock);
    const takenLocks: LockHandle[] = [];
    try {
      while (takenLocks.length < resolvedKeys.length) {
        const remainingKeys = resolvedKeys.slice(takenLocks.length);
        if (remainingKeys.length > 1)
          takenLocks.push(...(await new LockSet(takenLocks).run(() => this.#takeFreeKeys(remainingKeys, deadline))));
        const busyKey = resolvedKeys[takenLocks.length];
        if (busyKey) takenLocks.push(await this.#waitForKey(busyKey, deadline, new LockSet([...takenLocks])));
      }
      const lockSet = new LockSet(takenLocks);
      lockSet.throwIfLost();
      return lockSet;
    } catch (error) {
      const mayWait = resolvedKeys.some(({ options: { waitMs } }) => waitMs > 0);
      await this.#releaseWithin(mayWait ? MAX_RELEASE_MS : Infinity, takenLocks);
      throw error;
    }
  }

  async withLocks<T>(
    keys: readonly WantedKey[],
    work: (locks: LockSet) => Promise<T> | T,
    options?: AcquireOptions,
  ): Promise<T> {
    const lockSet = await this.acquireAll(keys, options);
    return runUnderLock(lockSet, () => work(lockSet), this.locker.resolve(options));
  }

  /**
   * Tries all `keys` at once, for a caller that waits until the deadline at most. Returns the locks before the first
   * key that is not free, and releases the others.
   */
  async #takeFreeKeys(keys: readonly ResolvedKey[], deadline: Deadline): Promise<LockHandle[]> {
    const timeoutController = new AbortController();
    const attempts = Promise.all(keys.map((key) => this.#tryKey(key, timeoutController.signal)));
    const mayWait = keys.some(({ options }) => options.waitMs > 0);
    if (mayWait && !(await isFulfilledWithin(this.clock, Math.max(deadline.remainingMs, SILENCE_MS), attempts)))
      timeoutController.abort();
    const results = await attempts;
    const busyIndex = results.indexOf(null);
    const resultsBeforeBusy = busyIndex < 0 ? results : results.slice(0, busyIndex);
    const maxReleaseMs = Math.max(deadline.remainingMs, MAX_RELEASE_MS);
    await this.#releaseWithin(mayWait ? maxReleaseMs : Infinity, results.slice(resultsBeforeBusy.length));
    return resultsBeforeBusy.filter((lock) => lock !== null);
  }

  /** A failed attempt counts as a busy key. The caller then waits for this key, and throws if the wait fails, too. */
  async #tryKey({ key, options }: ResolvedKey, timeoutSignal: AbortSignal): Promise<LockHandle | null> {
    const joinedSignal = new JoinedSignal(options.signal ? [options.signal, timeoutSignal] : [timeoutSignal]);
    const attemptOptions: ResolvedOptions = { ...options, signal: joinedSignal.signal };
    try {
      return await this.locker.tryAcquire(key, attemptOptions);
    } catch {
      return null;
    } finally {
      joinedSignal.end();
    }
  }

  /**
   * Waits inside the taken locks, because a service that shuts down still grants keys to callers that hold a lock. The
   * wait ends when one of these locks is lost, because the work could then no longer begin.
   */
  async #waitForKey(
    { key, options }: ResolvedKey,
    { remainingMs }: Deadline,
    takenLockSet: LockSet,
  ): Promise<LockHandle> {
    // With a wait of 0 ms, only the store's own time-out would end an attempt that gets no answer.
    const waitOptions = { ...options, waitMs: options.waitMs > 0 ? Math.max(remainingMs, 1) : 0 };
    if (takenLockSet.locks.length === 0) return this.locker.acquire(key, waitOptions, options.waitMs);
    const { signal: lossSignal } = takenLockSet;
    const joinedSignal = options.signal ? new JoinedSignal([options.signal, lossSignal]) : undefined;
    const signal = joinedSignal?.signal ?? lossSignal;
    try {
      return await takenLockSet.run(() => this.locker.acquire(key, { ...waitOptions, signal }, options.waitMs));
    } finally {
      joinedSignal?.end();
      takenLockSet.stopListening();
    }
  }

  /**
   * Releases locks under which no work has begun, so that `minHoldMs` keeps none of the keys closed. If the server is
   * silent, resolves after `ms`, and the release goes on.
   */
  async #releaseWithin(ms: number, results: readonly (LockHandle | null)[]): Promise<void> {
    const locks = results.filter((lock) => lock !== null);
    for (const lock of locks) lock.markUnused();
    if (locks.length > 0) await isFulfilledWithin(this.clock, ms, new LockSet(locks).release());
  }
}
