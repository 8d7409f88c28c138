import { claimOfOptions, covers, describeClaim, shareProperty } from '../contract/claim.js';
import { LockDeadlockError, LockShutdownError, LockTimeoutError } from '../contract/errors.js';
import { assertKey } from '../contract/key.js';
import { currentEntry, currentHolds, runOutsideLocks } from '../holding/call-tree.js';
import type { Hold } from '../holding/hold.js';
import { LockHandle } from '../holding/lock-handle.js';
import { runUnderLock } from '../holding/run-under.js';
import type { ServiceEnd } from '../holding/service-end.js';
import { readTicket } from '../holding/ticket.js';
import { beginKeepAlive, endKeepAlive, withKeepAlive } from '../kit/keep-alive.js';
import type { AcquireOptions, AdoptOptions, ResolvedOptions, TryAcquireOptions } from '../options/lock-options.js';
import type { OptionResolver } from '../options/option-resolver.js';
import { adoptLease, withClaimOf } from './adoption.js';
import { Acquisition, type AcquisitionDependencies } from './acquisition.js';
import { KeyHeld } from './key-held.js';
import { runTraced, type TraceableCall } from './run-traced.js';

/** Acquires single keys for `LockService`. Callers pass keys without the namespace. */
export class Locker {
  constructor(
    private readonly dependencies: AcquisitionDependencies,
    private readonly optionResolver: OptionResolver,
    private readonly serviceEnd: ServiceEnd,
    private readonly keyPrefix: string,
  ) {}

  resolve(options?: AcquireOptions): Readonly<ResolvedOptions> {
    return this.optionResolver.resolveForReuse(options);
  }

  /** @param reportedWaitMs wait that a time-out reports, if the caller had begun to wait before this call */
  async acquire(key: string, options?: AcquireOptions, reportedWaitMs?: number): Promise<LockHandle> {
    return this.#acquireOrThrow(key, this.#resolveAndLimitWait(options), reportedWaitMs);
  }

  async tryAcquire(key: string, options?: TryAcquireOptions): Promise<LockHandle | null> {
    const resolvedOptions = { ...this.optionResolver.resolveForCall(options), waitMs: 0 };
    beginKeepAlive();
    try {
      const result = await this.#acquireHold(key, resolvedOptions);
      return result instanceof KeyHeld ? null : this.#createHandle(key, result);
    } finally {
      endKeepAlive();
    }
  }

  async adopt(ticketText: string, options: AdoptOptions = {}): Promise<LockHandle> {
    const { backend } = this.dependencies.service;
    const ticket = readTicket(ticketText, backend.name, this.keyPrefix);
    if (this.serviceEnd.isCallerRefused) throw new LockShutdownError(ticket.key);
    const resolvedOptions = this.#resolveAndLimitWait(withClaimOf(ticket, options));
    resolvedOptions.signal?.throwIfAborted();
    const run = (): Promise<Hold> => runOutsideLocks(() => adoptLease(ticket, resolvedOptions, this.dependencies));
    const adoptionCall = { key: ticket.key, options: resolvedOptions, run };
    const hold = await withKeepAlive(() => this.#runTraced(adoptionCall));
    return this.#createHandle(ticket.key.slice(this.keyPrefix.length), hold);
  }

  async withLock<T>(key: string, work: (lock: LockHandle) => Promise<T> | T, options?: AcquireOptions): Promise<T> {
    const resolvedOptions = this.#resolveAndLimitWait(options);
    const lock = await this.#acquireOrThrow(key, resolvedOptions);
    return await runUnderLock(lock, () => work(lock), resolvedOptions);
  }

  async tryWithLock<T>(
    key: string,
    work: (lock: LockHandle) => Promise<T> | T,
    options: TryAcquireOptions & { onBusy?: 'skip' },
  ): Promise<T | undefined> {
    const { onBusy: _skip, ...acquireOptions } = options;
    const lock = await this.tryAcquire(key, acquireOptions);
    return lock ? runUnderLock(lock, () => work(lock), this.optionResolver.resolveForCall(acquireOptions)) : undefined;
  }

  async #acquireOrThrow(key: string, options: Readonly<ResolvedOptions>, waitMs = options.waitMs): Promise<LockHandle> {
    beginKeepAlive();
    try {
      const result = await this.#acquireHold(key, options);
      if (!(result instanceof KeyHeld)) return this.#createHandle(key, result);
      const { holder, message } = result;
      const fullKey = this.keyPrefix + key;
      this.dependencies.service.observers.notify('timedOut', () => ({ key: fullKey, waitMs, holder }));
      throw new LockTimeoutError(fullKey, { waitMs, holder, message });
    } finally {
      endKeepAlive();
    }
  }

  #createHandle(key: string, hold: Hold): LockHandle {
    return new LockHandle(key, hold, this.dependencies.holds.release);
  }

  #resolveAndLimitWait(options?: AcquireOptions): Readonly<ResolvedOptions> {
    const [resolvedOptions, maxWaitMs] = [this.optionResolver.resolveForCall(options), this.serviceEnd.maxWaitMs];
    return resolvedOptions.waitMs > maxWaitMs ? { ...resolvedOptions, waitMs: maxWaitMs } : resolvedOptions;
  }

  #acquireHold(key: string, options: ResolvedOptions): Promise<Hold | KeyHeld> | Hold | KeyHeld {
    assertKey(key);
    options.signal?.throwIfAborted();
    const fullKey = this.keyPrefix + key;
    const reenteredHold = this.#tryReenter(fullKey, options);
    if (reenteredHold) return reenteredHold;
    if (this.serviceEnd.isCallerRefused) throw new LockShutdownError(fullKey);
    return this.#runTraced(new Acquisition(fullKey, options, this.dependencies));
  }

  #runTraced<Result extends Hold | KeyHeld>(call: TraceableCall<Result>): Promise<Result> {
    const { observers, backend } = this.dependencies.service;
    return observers.tracers.length === 0 ? call.run() : runTraced(call, observers.tracers, backend.name);
  }

  /**
   * Returns `undefined` if the call tree has no hold of `key`. Returns `KeyHeld` if it has one that it cannot re-enter,
   * and the caller does not wait.
   * @throws LockLostError; LockDeadlockError when the caller would wait for itself
   */
  #tryReenter(key: string, options: ResolvedOptions): Hold | KeyHeld | undefined {
    const hold = this.#findCurrentHold(key);
    if (!hold) return undefined;
    if (!hold.isHeld) throw hold.createLossError();
    const { claim: heldClaim } = hold;
    const { observers, metadata } = this.dependencies.service;
    const wantedClaim = claimOfOptions(options);
    const isReentrant = options.reentrant && hold.options.reentrant;
    if (isReentrant && covers(heldClaim, wantedClaim)) {
      hold.reenter();
      const { fencingToken } = hold;
      observers.notify('acquired', () => ({
        key,
        fencingToken,
        waitedMs: 0,
        from: 're-entry',
        ...shareProperty(heldClaim),
      }));
      return hold;
    }
    if (options.waitMs === 0) return new KeyHeld(metadata);
    const upgrade = isReentrant ? { has: describeClaim(heldClaim), asks: describeClaim(wantedClaim) } : undefined;
    const heldKeys = currentHolds().map((held) => held.key);
    throw new LockDeadlockError(heldKeys, key, [], upgrade);
  }

  #findCurrentHold(key: string): Hold | undefined {
    for (let entry = currentEntry(); entry; entry = entry.outer) {
      const { hold, handle } = entry;
      // A shared hold goes on for other call trees after this one has left.
      const hasLeft = hold.hasEnded || (hold.isShared && handle.state === 'released');
      if (hold.listener.service === this.dependencies.service && hold.key === key && !hasLeft) return hold;
    }
    return undefined;
  }
}
