import { claimOfOptions, covers, describeClaim, shareProperty } from '../contract/claim.js';
import { LockDeadlockError, LockShutdownError, LockTimeoutError } from '../contract/errors.js';
import { describeReentry, describeUpgrade, describeWaitForItself } from '../contract/reentry-messages.js';
import { assertKey } from '../contract/key.js';
import { currentHolds, findOwnHold, runOutsideLocks } from '../holding/call-tree.js';
import type { Hold } from '../holding/hold.js';
import { LockHandle } from '../holding/lock-handle.js';
import { runUnderLock } from '../holding/run-under.js';
import type { ServiceEnd } from '../holding/service-end.js';
import { readTicket } from '../holding/ticket.js';
import { beginKeepAlive, endKeepAlive, withKeepAlive } from '../kit/keep-alive.js';
import { warnOnce } from '../kit/warn-once.js';
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
      const fullKey = this.keyPrefix + key;
      const { holder, message = this.#describeWaitForItself(fullKey, waitMs) } = result;
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
   * Returns `undefined` for a call that has to ask as a stranger does. It starts in no hold of `key`, or in one whose
   * first caller has left. Returns `KeyHeld` if the call may not enter the hold, and does not wait.
   * @throws LockLostError; LockDeadlockError when the call would wait for the work that it starts in
   */
  #tryReenter(key: string, options: ResolvedOptions): Hold | KeyHeld | undefined {
    const hold = this.#findOwnHold(key);
    if (!hold) return undefined;
    const { isOpen } = hold;
    if (!hold.isHeld) throw hold.createLossError();
    if (!isOpen && options.waitMs !== Infinity) return undefined;
    const [heldClaim, wantedClaim] = [hold.claim, claimOfOptions(options)];
    const isReentrant = options.reentrant && hold.options.reentrant;
    if (isOpen && isReentrant && covers(heldClaim, wantedClaim)) return this.#reenter(hold);
    const message = !isOpen
      ? describeWaitForItself(key, options.waitMs)
      : isReentrant
        ? describeUpgrade(key, describeClaim(heldClaim), describeClaim(wantedClaim))
        : describeReentry(key, options.reentrant, hold.options.reentrant);
    if (options.waitMs > 0)
      throw new LockDeadlockError(
        currentHolds().map((held) => held.key),
        key,
        [],
        message,
      );
    warnOnce(message);
    return new KeyHeld(this.dependencies.service.metadata, message);
  }

  /** Returns the message for a call that has waited in vain for calls that nobody awaited, and itself belongs to. */
  #describeWaitForItself(key: string, waitMs: number): string | undefined {
    return this.#findOwnHold(key) ? describeWaitForItself(key, waitMs) : undefined;
  }

  #reenter(hold: Hold): Hold {
    hold.reenter();
    const { key, fencingToken, claim } = hold;
    this.dependencies.service.observers.notify('acquired', () => ({
      key,
      fencingToken,
      waitedMs: 0,
      from: 're-entry',
      ...shareProperty(claim),
    }));
    return hold;
  }

  #findOwnHold(key: string): Hold | undefined {
    return findOwnHold((hold) => hold.key === key && hold.listener.service === this.dependencies.service);
  }
}
