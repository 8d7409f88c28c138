import { type Claim, claimFor, shown } from '../contract/claim.js';
import { detached } from '../time/detached.js';
import { LockConfigurationError, LockLostError, type LossReason } from '../contract/errors.js';
import { HAND_OFF_BITS } from '../options/hand-off-options.js';
import type { HoldState } from '../events/lock-observer.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import { slotOf } from '../turns/slot.js';
import { writeSequencer } from './sequencer.js';
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

/** One lease shared by re-entered acquisitions, and by readers who joined: it ends with the last of them, or with the lease. */
export class Hold implements WatchdogListener {
  readonly since: number;
  #fencingToken: bigint | undefined;
  #isShown = false;
  #isForgone = false;
  #entries = 1;
  /** How many callers who share the key have it by the lease of the first. */
  #joined = 0;
  #lostBy: LossReason | undefined;
  #released = false;
  #abort: AbortController | undefined;
  #maxHold: Timer | undefined;

  constructor(
    readonly key: string,
    readonly options: ResolvedOptions,
    readonly listener: HoldListener,
    /** Callers who pass one lease on share it. */
    readonly watchdog: Watchdog,
    /** Which caller of this lease we are. */
    readonly handOff = 0,
  ) {
    const { clock } = listener.service;
    this.since = clock.now();
    watchdog.listener = this;
    if (options.maxHoldMs !== Infinity) {
      this.#maxHold = clock.schedule(options.maxHoldMs, () => this.onLost('max-hold'), { background: true });
    }
  }

  get claim(): Claim {
    return claimFor(this.options);
  }

  /** Who could take its place in this process: see `slotOf`. */
  get slot(): string {
    return slotOf(this.key, this.options);
  }

  /** Whether others of this process may join the lease while it lasts. */
  get isShared(): boolean {
    return this.options.mode === 'shared';
  }

  /** Tells it from the other holds of this process: for one that has all of its key that is the key. */
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
    return this.watchdog.inJeopardy ? 'jeopardy' : 'held';
  }

  /** Exact now: compares clocks, waits for no timer. */
  get isHeld(): boolean {
    return this.#lostBy === undefined && (this.#released || this.watchdog.trusted);
  }

  /** Nobody is inside any more. */
  get ended(): boolean {
    return this.#entries === 0;
  }

  get signal(): AbortSignal {
    const abort = (this.#abort ??= new AbortController());
    if (!this.isHeld && !abort.signal.aborted) detached(() => abort.abort(this.lossError()));
    return abort.signal;
  }

  /** Whether the next caller may have the lease that `exit` found good: not in doubt, and not shown as ours. */
  get mayHandOver(): boolean {
    const { inJeopardy, lease } = this.watchdog;
    return !inJeopardy && !lease.complete && !this.#isShown;
  }

  /** Tells this acquisition from all others. From now on the lease ends with it. */
  show(): string {
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
    return writeSequencer({ backend: backend.name, key, fencingToken, owner: this.watchdog.lease.owner });
  }

  /** For observers. */
  get observed(): HoldState {
    const { key, fencingToken, since, watchdog, listener } = this;
    const leftMs = this.isHeld ? watchdog.leftMs : 0;
    return { key, fencingToken, heldMs: listener.service.clock.now() - since, leftMs, ...shown(this.claim) };
  }

  /** For so much longer the key stays closed, though everybody has left. */
  get closedMs(): number {
    const { options, listener, since } = this;
    return this.#isForgone ? 0 : Math.max(0, since + options.minHoldMs - listener.service.clock.now());
  }

  /** Work never began, unless it is that of a caller around this one. */
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

  /** Another call tree comes in. */
  join(): void {
    this.#entries += 1;
    this.#joined += 1;
  }

  get joined(): number {
    return this.#joined;
  }

  /** Once the outermost of those inside has succeeded. */
  async complete(): Promise<void> {
    if (this.#entries === 1) await this.watchdog.lease.complete?.();
  }

  /** Whether this was the last way out of a hold that is not lost: the lease is then the caller's to pass on. */
  exit(): boolean {
    this.#entries -= 1;
    if (this.#entries > 0 || this.#lostBy !== undefined) return false;
    if (!this.watchdog.trusted) {
      this.onLost(this.#lossReason);
      return false;
    }
    this.#released = true;
    this.#maxHold?.cancel();
    return true;
  }

  onJeopardy(cause?: unknown): void {
    if (!this.#released) detached(() => this.listener.jeopardy(this, cause));
  }

  onSafe(): void {
    if (!this.#released) detached(() => this.listener.safe(this));
  }

  onLost(reason: LossReason): void {
    if (this.#lostBy !== undefined || this.#released) return;
    this.#lostBy = reason;
    this.#maxHold?.cancel();
    detached(() => {
      this.listener.lost(this, reason);
      this.#abort?.abort(this.lossError());
    });
  }
}
