import { claimFor, covers, describeClaim, shareProperty } from '../contract/claim.js';
import { LockDeadlockError, LockShutdownError, LockTimeoutError } from '../contract/errors.js';
import { assertKey } from '../contract/key.js';
import { currentEntry } from '../holding/call-tree.js';
import type { Hold } from '../holding/hold.js';
import { currentLocks, LockHandle } from '../holding/lock-handle.js';
import { runUnderLock } from '../holding/run-under.js';
import type { ServiceEnd } from '../holding/service-end.js';
import { beginAwaited, endAwaited } from '../kit/awaited-promises.js';
import type { AcquireOptions, ResolvedOptions, TryAcquireOptions } from '../options/lock-options.js';
import type { OptionResolver } from '../options/option-resolver.js';
import { Acquisition, type AcquisitionParts } from './acquisition.js';
import { KeyHeld } from './key-held.js';
import { runTraced } from './run-traced.js';

/** Takes single keys for the callers of one service, who name them without the namespace. See `LockService`. */
export class Locker {
  constructor(
    private readonly parts: AcquisitionParts,
    private readonly options: OptionResolver,
    private readonly end: ServiceEnd,
    private readonly keyPrefix: string,
  ) {}

  /** Returns all options of a call. The result can be given to another call, which then need not resolve it again. */
  resolve(options?: AcquireOptions): Readonly<ResolvedOptions> {
    return this.options.resolve(options);
  }

  async acquire(key: string, options?: AcquireOptions): Promise<LockHandle> {
    return this.#acquire(key, this.#withLimitedWait(options));
  }

  async tryAcquire(key: string, options?: TryAcquireOptions): Promise<LockHandle | null> {
    const resolved = { ...this.options.of(options), waitMs: 0 };
    beginAwaited();
    try {
      const hold = await this.#take(key, resolved);
      return hold instanceof KeyHeld ? null : this.#handleOf(key, hold);
    } finally {
      endAwaited();
    }
  }

  async withLock<T>(key: string, work: (lock: LockHandle) => Promise<T> | T, options?: AcquireOptions): Promise<T> {
    const resolved = this.#withLimitedWait(options);
    const lock = await this.#acquire(key, resolved);
    return await runUnderLock(lock, () => work(lock), resolved);
  }

  async tryWithLock<T>(
    key: string,
    work: (lock: LockHandle) => Promise<T> | T,
    options: TryAcquireOptions & { onBusy?: 'skip' },
  ): Promise<T | undefined> {
    const { onBusy: _skip, ...acquire } = options;
    const lock = await this.tryAcquire(key, acquire);
    return lock ? runUnderLock(lock, () => work(lock), this.options.of(acquire)) : undefined;
  }

  async #acquire(key: string, options: Readonly<ResolvedOptions>): Promise<LockHandle> {
    beginAwaited();
    try {
      const hold = await this.#take(key, options);
      if (!(hold instanceof KeyHeld)) return this.#handleOf(key, hold);
      const { waitMs } = options;
      const { holder, message } = hold;
      this.parts.service.observers.notify('timedOut', () => ({ key: this.keyPrefix + key, waitMs, holder }));
      throw new LockTimeoutError(key, { waitMs, holder, message });
    } finally {
      endAwaited();
    }
  }

  #handleOf(key: string, hold: Hold): LockHandle {
    return new LockHandle(key, hold, this.parts.holds.release);
  }

  /** Returns the options of a call, which cannot wait longer than a service that ends. */
  #withLimitedWait(options?: AcquireOptions): Readonly<ResolvedOptions> {
    const [resolved, waitMs] = [this.options.of(options), this.end.maxWaitMs];
    return resolved.waitMs > waitMs ? { ...resolved, waitMs } : resolved;
  }

  #take(key: string, options: ResolvedOptions): Promise<Hold | KeyHeld> | Hold | KeyHeld {
    assertKey(key);
    options.signal?.throwIfAborted();
    const fullKey = this.keyPrefix + key;
    const reentered = this.#reenter(fullKey, options);
    if (reentered) return reentered;
    if (this.end.refusesCaller) throw new LockShutdownError(key);
    const acquisition = new Acquisition(fullKey, options, this.parts);
    const { tracers } = this.parts.service.observers;
    return tracers.length === 0 ? acquisition.run() : runTraced(acquisition, tracers, this.parts.service.backend.name);
  }

  /**
   * Enters the hold of `key` that the call tree has already, if any. `KeyHeld`: the caller wants no re-entry, or more of
   * the key than the tree has, and does not wait.
   * @throws LockLostError; LockDeadlockError when the caller would wait for itself
   */
  #reenter(key: string, options: ResolvedOptions): Hold | KeyHeld | undefined {
    const hold = this.#currentHold(key);
    if (!hold) return undefined;
    if (!hold.isHeld) throw hold.lossError();
    const { claim } = hold;
    const { observers, metadata } = this.parts.service;
    const wanted = claimFor(options);
    const isReentrant = options.reentrant && hold.options.reentrant;
    if (isReentrant && covers(claim, wanted)) {
      hold.reenter();
      const { fencingToken } = hold;
      observers.notify('acquired', () => ({
        key,
        fencingToken,
        waitedMs: 0,
        from: 're-entry',
        ...shareProperty(claim),
      }));
      return hold;
    }
    if (options.waitMs === 0) return new KeyHeld(metadata);
    const upgrade = isReentrant ? { has: describeClaim(claim), asks: describeClaim(wanted) } : undefined;
    const held = currentLocks().map((lock) => lock.key);
    throw new LockDeadlockError(held, key, [], upgrade);
  }

  /** Returns the hold of `key` that the call tree has from this service, unless all have left it meanwhile. */
  #currentHold(key: string): Hold | undefined {
    for (let entry = currentEntry(); entry; entry = entry.outer) {
      const { hold, handle } = entry;
      // Other trees may be inside a hold that is shared.
      const hasLeft = hold.hasEnded || (hold.isShared && handle.state === 'released');
      if (hold.listener.service === this.parts.service && hold.key === key && !hasLeft) return hold;
    }
    return undefined;
  }
}
