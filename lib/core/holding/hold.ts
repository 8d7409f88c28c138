import { type Claim, claimOfOptions, shareProperty } from '../contract/claim.js';
import { runWithoutContext } from '../time/without-context.js';
import { LockConfigurationError, LockLostError, type LossReason } from '../contract/errors.js';
import { HAND_OFF_BITS } from '../options/hand-off-options.js';
import type { HoldState } from '../events/lock-observer.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import { slotOf } from '../turns/slot.js';
import { signLock } from './signed-lock.js';
import type { ServiceContext } from './service-context.js';
import type { Timer } from '../time/timers.js';
import type { Watchdog, WatchdogListener } from './watchdog.js';
import { createUnlimitedAbortController } from '../time/unlimited-abort-controller.js';

export interface HoldListener {
  readonly service: ServiceContext;
  onJeopardy(hold: Hold, cause?: unknown): void;
  onSafe(hold: Hold): void;
  onLost(hold: Hold, reason: LossReason): void;
  /** Ends the hold for an adoption by another process within `withinMs`. @throws see `LockHandle.transfer` */
  onTransfer(hold: Hold, withinMs: number): Promise<void>;
}

/**
 * Use of one lease by callers of this process: by one caller with its re-entries, or by several callers that share the
 * key. The hold ends when its last caller leaves, or with the lease.
 */
export class Hold implements WatchdogListener {
  readonly acquiredAt: number;
  readonly slot: string;
  #fencingToken: bigint | undefined;
  #hasSequencer = false;
  #isUnused = false;
  #entryCount = 1;
  #joinCount = 0;
  /** Whether calls that start inside may enter: until the caller that began the hold has left it. */
  isOpen = true;
  #recordedLossReason: LossReason | undefined;
  #isReleased = false;
  #lossController: AbortController | undefined;
  #maxHoldTimer: Timer | undefined;

  constructor(
    readonly key: string,
    readonly options: ResolvedOptions,
    readonly listener: HoldListener,
    /** Watchdog of the lease. A hand-off passes both to the next hold. */
    readonly watchdog: Watchdog,
    /** Number of hand-offs and transfers that the lease had before this hold. */
    readonly handOffCount = 0,
    /** Whether the hold began with the adoption of a transferred lease, on an extra turn: see `Turns.takeExtraTurn`. */
    readonly isAdopted = false,
  ) {
    const { clock } = listener.service;
    this.acquiredAt = clock.now();
    this.slot = slotOf(key, options);
    watchdog.listener = this;
    if (options.maxHoldMs !== Infinity) {
      this.#maxHoldTimer = clock.schedule(options.maxHoldMs, () => this.onLost('max-hold'), { background: true });
    }
  }

  get claim(): Claim {
    return claimOfOptions(this.options);
  }

  get isShared(): boolean {
    return this.options.mode === 'shared';
  }

  /** Name that is unique among the present holds of this service: the key, or the random owner of a share. */
  get id(): string {
    return this.slot === this.key ? this.key : this.watchdog.lease.owner;
  }

  get fencingToken(): bigint {
    this.#fencingToken ??= (this.watchdog.lease.fencingToken << HAND_OFF_BITS) + BigInt(this.handOffCount);
    return this.#fencingToken;
  }

  get state(): 'held' | 'jeopardy' | 'lost' {
    if (!this.isHeld) return 'lost';
    return this.watchdog.isInJeopardy ? 'jeopardy' : 'held';
  }

  /** Whether the lease is trusted at this moment, or was released before a loss. */
  get isHeld(): boolean {
    return this.#recordedLossReason === undefined && (this.#isReleased || this.watchdog.isTrusted);
  }

  get isReentered(): boolean {
    return this.#entryCount > 1;
  }

  get hasEnded(): boolean {
    return this.#entryCount === 0;
  }

  get signal(): AbortSignal {
    const controller = (this.#lossController ??= createUnlimitedAbortController());
    if (!this.isHeld && !controller.signal.aborted) runWithoutContext(() => controller.abort(this.createLossError()));
    return controller.signal;
  }

  get canBeHandedOff(): boolean {
    const { isInJeopardy, lease } = this.watchdog;
    return !isInJeopardy && !lease.complete && !this.#hasSequencer;
  }

  /**
   * Returns the text of `LockHandle.sequencer`. The lease is then never handed off, because the sequencer names the
   * lease's owner.
   */
  createSequencer(): string {
    const { key, fencingToken } = this;
    const { backend } = this.listener.service;
    if (!backend.store.isHeldBy) {
      throw new LockConfigurationError(
        `locks of ${backend.name} have no sequencers: nobody could check one`,
        'backend',
        key,
      );
    }
    this.#hasSequencer = true;
    return signLock('lock1', { backend: backend.name, key, fencingToken, owner: this.watchdog.lease.owner });
  }

  get eventFields(): HoldState {
    const { key, fencingToken, acquiredAt, watchdog, listener } = this;
    const leftMs = this.isHeld ? watchdog.leftMs : 0;
    return {
      key,
      fencingToken,
      heldMs: listener.service.clock.now() - acquiredAt,
      leftMs,
      ...shareProperty(this.claim),
    };
  }

  /** Milliseconds for which `minHoldMs` would keep the key closed after a release now. */
  get closedAfterReleaseMs(): number {
    const { options, listener, acquiredAt } = this;
    return this.#isUnused ? 0 : Math.max(0, acquiredAt + options.minHoldMs - listener.service.clock.now());
  }

  /** Ends the effect of `minHoldMs`, because no work began. Does nothing in a re-entry: the outer work has begun. */
  markUnused(): void {
    this.#isUnused = this.#entryCount === 1;
  }

  createLossError(): LockLostError {
    return new LockLostError(this.key, this.#lossReason);
  }

  get #lossReason(): LossReason {
    return this.#recordedLossReason ?? (this.watchdog.lease.revoked?.aborted ? 'revoked' : 'expired');
  }

  reenter(): void {
    this.#entryCount += 1;
  }

  /** Adds a caller of another call tree. */
  join(): void {
    this.#entryCount += 1;
    this.#joinCount += 1;
  }

  get joinCount(): number {
    return this.#joinCount;
  }

  /** Commits the work that was done through the lease's attachment. Does nothing inside a re-entry. */
  async completeWork(): Promise<void> {
    if (this.#entryCount === 1) await this.watchdog.lease.complete?.();
  }

  /**
   * Ends one caller's use. Returns true if no caller is left and the lease is not lost. The lease must then be handed
   * off, transferred, kept closed or released.
   */
  leave(): boolean {
    this.#entryCount -= 1;
    if (this.#entryCount > 0 || this.#recordedLossReason !== undefined) return false;
    if (!this.watchdog.isTrusted) {
      this.onLost(this.#lossReason);
      return false;
    }
    this.#isReleased = true;
    this.#maxHoldTimer?.cancel();
    return true;
  }

  onJeopardy(cause?: unknown): void {
    if (!this.#isReleased) runWithoutContext(() => this.listener.onJeopardy(this, cause));
  }

  onSafe(): void {
    if (!this.#isReleased) runWithoutContext(() => this.listener.onSafe(this));
  }

  onLost(reason: LossReason): void {
    if (this.#recordedLossReason !== undefined || this.#isReleased) return;
    this.#recordedLossReason = reason;
    this.#maxHoldTimer?.cancel();
    runWithoutContext(() => {
      this.listener.onLost(this, reason);
      this.#lossController?.abort(this.createLossError());
    });
  }
}
