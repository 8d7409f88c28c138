import { type Claim, claimFor, shareProperty } from '../contract/claim.js';
import { runDetached } from '../time/detached.js';
import { LockConfigurationError, LockLostError, type LossReason } from '../contract/errors.js';
import { HAND_OFF_BITS } from '../options/hand-off-options.js';
import type { HoldState } from '../events/lock-observer.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import { slotOf } from '../turns/slot.js';
import { formatSequencer } from './sequencer.js';
import type { ServiceContext } from './service-context.js';
import type { Timer } from '../time/timers.js';
import type { Watchdog, WatchdogListener } from './watchdog.js';

/** Receiver of what happens to the holds of one service. */
export interface HoldListener {
  readonly service: ServiceContext;
  jeopardy(hold: Hold, cause?: unknown): void;
  safe(hold: Hold): void;
  lost(hold: Hold, reason: LossReason): void;
}

/**
 * Lock that callers of this process have by one lease: one caller with its re-entries, or several that share the key. It
 * ends with the last of them, or with the lease.
 */
export class Hold implements WatchdogListener {
  readonly since: number;
  #fencingToken: bigint | undefined;
  #isShown = false;
  #isForgone = false;
  #entries = 1;
  /** Number of callers who share the key and joined. */
  #joined = 0;
  #lostBy: LossReason | undefined;
  #isReleased = false;
  #loss: AbortController | undefined;
  #maxHoldTimer: Timer | undefined;

  constructor(
    readonly key: string,
    readonly options: ResolvedOptions,
    readonly listener: HoldListener,
    /** Watchdog of the lease, which passes from hold to hold with it. */
    readonly watchdog: Watchdog,
    /** Number of hand-offs of the lease before this hold. */
    readonly handOff = 0,
  ) {
    const { clock } = listener.service;
    this.since = clock.now();
    watchdog.listener = this;
    if (options.maxHoldMs !== Infinity) {
      this.#maxHoldTimer = clock.schedule(options.maxHoldMs, () => this.onLost('max-hold'), { background: true });
    }
  }

  get claim(): Claim {
    return claimFor(this.options);
  }

  /** Slot of the callers who could take this hold's place: see `slotOf`. */
  get slot(): string {
    return slotOf(this.key, this.options);
  }

  /** Whether others of this process may join the lease while it lasts. */
  get isShared(): boolean {
    return this.options.mode === 'shared';
  }

  /** Name that no other hold of this service has at the time. An exclusive hold has its key for an id. */
  get id(): string {
    const { key, slot } = this;
    return slot === key ? key : slot + this.watchdog.lease.owner;
  }

  get fencingToken(): bigint {
    this.#fencingToken ??= (this.watchdog.lease.fencingToken << HAND_OFF_BITS) + BigInt(this.handOff);
    return this.#fencingToken;
  }

  get state(): 'held' | 'jeopardy' | 'lost' {
    if (!this.isHeld) return 'lost';
    return this.watchdog.isInJeopardy ? 'jeopardy' : 'held';
  }

  /** Whether the lease is trusted, exact now: compares clocks and waits for no timer. */
  get isHeld(): boolean {
    return this.#lostBy === undefined && (this.#isReleased || this.watchdog.isTrusted);
  }

  /** Whether all callers have left. */
  get hasEnded(): boolean {
    return this.#entries === 0;
  }

  get signal(): AbortSignal {
    const abort = (this.#loss ??= new AbortController());
    if (!this.isHeld && !abort.signal.aborted) runDetached(() => abort.abort(this.lossError()));
    return abort.signal;
  }

  /** Whether the next caller may go on with the lease: not in doubt, and in no sequencer. */
  get canBePassedOn(): boolean {
    const { isInJeopardy, lease } = this.watchdog;
    return !isInJeopardy && !lease.complete && !this.#isShown;
  }

  /** Writes a sequencer, which names this acquisition. From now on the lease is passed on to no other caller. */
  writeSequencer(): string {
    const { key, fencingToken } = this;
    const { backend } = this.listener.service;
    if (!backend.store.isHeldBy) {
      throw new LockConfigurationError(
        `locks of ${backend.name} have no sequencers: nobody could check one`,
        'backend',
        key,
      );
    }
    this.#isShown = true;
    return formatSequencer({ backend: backend.name, key, fencingToken, owner: this.watchdog.lease.owner });
  }

  /** State of the hold, as events tell it. */
  get observedState(): HoldState {
    const { key, fencingToken, since, watchdog, listener } = this;
    const leftMs = this.isHeld ? watchdog.leftMs : 0;
    return { key, fencingToken, heldMs: listener.service.clock.now() - since, leftMs, ...shareProperty(this.claim) };
  }

  /** Milliseconds for which the key stays closed after the release (`minHoldMs`). */
  get closedMs(): number {
    const { options, listener, since } = this;
    return this.#isForgone ? 0 : Math.max(0, since + options.minHoldMs - listener.service.clock.now());
  }

  /** Notes that no work began, so that the key need not stay closed. A caller around this one may work under the hold. */
  forgo(): void {
    this.#isForgone = this.#entries === 1;
  }

  lossError(): LockLostError {
    return new LockLostError(this.key, this.#lossReason);
  }

  get #lossReason(): LossReason {
    return this.#lostBy ?? (this.watchdog.lease.revoked?.aborted ? 'revoked' : 'expired');
  }

  enter(): void {
    this.#entries += 1;
  }

  /** Lets another call tree in. */
  join(): void {
    this.#entries += 1;
    this.#joined += 1;
  }

  get joined(): number {
    return this.#joined;
  }

  /** Completes what the outermost caller did through the lease's attachment. */
  async complete(): Promise<void> {
    if (this.#entries === 1) await this.watchdog.lease.complete?.();
  }

  /** Lets a caller out. Returns whether it was the last one and the hold is not lost: the lease is then the caller's. */
  leave(): boolean {
    this.#entries -= 1;
    if (this.#entries > 0 || this.#lostBy !== undefined) return false;
    if (!this.watchdog.isTrusted) {
      this.onLost(this.#lossReason);
      return false;
    }
    this.#isReleased = true;
    this.#maxHoldTimer?.cancel();
    return true;
  }

  onJeopardy(cause?: unknown): void {
    if (!this.#isReleased) runDetached(() => this.listener.jeopardy(this, cause));
  }

  onSafe(): void {
    if (!this.#isReleased) runDetached(() => this.listener.safe(this));
  }

  onLost(reason: LossReason): void {
    if (this.#lostBy !== undefined || this.#isReleased) return;
    this.#lostBy = reason;
    this.#maxHoldTimer?.cancel();
    runDetached(() => {
      this.listener.lost(this, reason);
      this.#loss?.abort(this.lossError());
    });
  }
}
