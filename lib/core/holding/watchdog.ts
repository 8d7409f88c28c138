import { AbortListener } from '../time/abort-listener.js';
import type { LossReason } from '../contract/errors.js';
import type { Lease } from '../leasing/lease.js';
import { trustedUntil } from '../leasing/trust.js';
import { WheelTimer, type TimerWheel } from '../time/timer-wheel.js';
import type { Clock, Timer } from '../time/timers.js';

/** Whom a watchdog tells. Exactly one `onLost` comes, or none if the watchdog was stopped first. */
export interface WatchdogListener {
  onJeopardy(cause?: unknown): void;
  onSafe(): void;
  onLost(reason: LossReason): void;
}

const SHORTEST_RETRY_MS = 10;
const LONGEST_RETRY_MS = 1_000;

/**
 * Keeps a lease alive and says when it can no longer be trusted. Renewals go out at a third of the TTL, one at a time;
 * a failed one is repeated, in jeopardy, for as long as the lease is trusted. The end of trust comes from a timer of
 * its own and from a comparison of clocks, never from a reply: a server that says nothing is noticed as fast as one
 * that says no.
 */
export class Watchdog {
  listener: WatchdogListener | undefined;
  /** When this process got the lease. */
  readonly since: number;
  #trustedUntil: number;
  #sentAt: number;
  #state: 'held' | 'jeopardy' | 'over' = 'held';
  /** When the renewal in flight was sent. */
  #renewalSentAt: number | undefined;
  #onRenewalOver: (() => void) | undefined;
  /** For the next renewal, or to see whether one in flight is late. A thousand locks share a time on the grid. */
  readonly #timer: WheelTimer;
  #endOfTrust: Timer | undefined;
  readonly #revocation: AbortListener | undefined;

  constructor(
    readonly lease: Lease,
    private readonly renews: boolean,
    private readonly clock: Clock,
    grid: TimerWheel,
  ) {
    this.since = clock.now();
    this.#timer = new WheelTimer(grid, () => this.#onTime());
    this.#sentAt = lease.times.sentAt;
    this.#trustedUntil = trustedUntil(this.#sentAt, this.#trustedMs);
    const { revoked } = lease;
    lease.onEnd = () => this.#endWithLease();
    if (revoked?.aborted === false) this.#revocation = new AbortListener(revoked, () => this.#lose('revoked'));
    if (renews) this.#scheduleRenewal();
    else this.#awaitEndOfTrust();
  }

  /** Exact now, also in the first synchronous step after a stalled event loop. */
  get trusted(): boolean {
    return this.#state !== 'over' && this.lease.revoked?.aborted !== true && this.clock.now() < this.#trustedUntil;
  }

  get inJeopardy(): boolean {
    return this.#state === 'jeopardy';
  }

  /** Until the end of trust, if nothing renews it. */
  get leftMs(): number {
    return Math.max(0, this.#trustedUntil - this.clock.now());
  }

  /** Something suggests that the lease may be gone: the connection dropped, a role changed. */
  suspect(cause?: unknown): void {
    if (this.#state !== 'held') return;
    this.#state = 'jeopardy';
    this.#awaitEndOfTrust();
    this.listener?.onJeopardy(cause);
  }

  /** Asks the backend at once. While a renewal is in flight its answer serves. */
  renewNow(): void {
    if (this.#state === 'over' || this.#renewalSentAt !== undefined) return;
    const sentAt = this.clock.now();
    if (sentAt >= this.#trustedUntil) return this.#lose('expired');
    this.#renewalSentAt = sentAt;
    this.#timer.setFrom(this.#lateFrom, this.#trustedMs / 12);
    const onFailure = (error: unknown): void => this.#onFailure(error);
    try {
      this.lease.renew().then((ours) => this.#onAnswer(ours), onFailure);
    } catch (error) {
      onFailure(error);
    }
  }

  /** Ends the watch; resolves when no renewal is in flight any more, if there is one. Bounded by the end of trust. */
  stop(): Promise<void> | undefined {
    this.#end();
    if (this.#renewalSentAt === undefined) return undefined;
    return new Promise((resolve) => {
      const timer = this.clock.schedule(this.leftMs, resolve, { background: true });
      this.#onRenewalOver = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  #onAnswer(ours: boolean): void {
    const sentAt = this.#endRenewal();
    if (this.#state === 'over') return;
    if (!ours) return this.#lose('revoked');
    if (!this.trusted) return this.#lose('expired');
    this.#sentAt = sentAt;
    this.#trustedUntil = trustedUntil(sentAt, this.#trustedMs);
    if (this.#state === 'jeopardy') {
      this.#state = 'held';
      if (this.renews) this.#endOfTrust?.cancel();
      else this.#awaitEndOfTrust();
      this.listener?.onSafe();
    }
    this.#scheduleRenewal();
  }

  #onFailure(error: unknown): void {
    this.#endRenewal();
    this.suspect(error);
    this.#retrySoon();
  }

  #endRenewal(): number {
    const sentAt = this.#renewalSentAt ?? this.#sentAt;
    this.#renewalSentAt = undefined;
    this.#onRenewalOver?.();
    return sentAt;
  }

  get #trustedMs(): number {
    return this.lease.times.trustedMs;
  }

  #scheduleRenewal(): void {
    if (this.renews) this.#timer.setBy(this.#sentAt + this.#trustedMs / 3, this.#trustedMs / 24);
  }

  /** On the grid too: a thousand locks whose renewals failed share their next requests as well. */
  #retrySoon(): void {
    if (this.#state === 'over') return;
    const delayMs = Math.min(Math.max(this.#trustedMs / 20, SHORTEST_RETRY_MS), LONGEST_RETRY_MS);
    this.#timer.setFrom(this.clock.now() + delayMs, delayMs / 3);
  }

  get #lateFrom(): number {
    return this.#sentAt + (this.#trustedMs * 2) / 3;
  }

  #onTime(): void {
    if (this.#renewalSentAt === undefined) this.renewNow();
    else if (this.renews) this.suspect(new Error('the renewal is late'));
  }

  /** To the millisecond. Needed in doubt only, and where nothing is renewed. */
  #awaitEndOfTrust(): void {
    this.#endOfTrust?.cancel();
    const onEnd = (): void => (this.clock.now() < this.#trustedUntil ? this.#awaitEndOfTrust() : this.#lose('expired'));
    this.#endOfTrust = this.clock.schedule(this.leftMs, onEnd, { background: true });
  }

  /** After a stall the lease may learn of its end before a renewal that is late does. */
  #endWithLease(): boolean {
    if (this.#state === 'over') return false;
    this.#lose('expired');
    return true;
  }

  #lose(reason: LossReason): void {
    if (this.#state === 'over') return;
    this.#end();
    this.listener?.onLost(reason);
  }

  #end(): void {
    this.#state = 'over';
    this.#timer.cancel();
    this.#endOfTrust?.cancel();
    this.#revocation?.end();
  }
}
