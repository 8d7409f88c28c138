import { AbortListener } from './abort-listener.js';
import type { LossReason } from './errors.js';
import { tell } from './renewal.js';
import type { Lease, RenewalListener } from './lock-backend.js';
import { GridTimer, type TimerGrid } from './timer-grid.js';
import type { Clock, Timer } from './timers.js';

/** Whom a watchdog tells. Exactly one `onLost` comes, or none if the watchdog was stopped first. */
export interface WatchdogListener {
  onJeopardy(cause?: unknown): void;
  onSafe(): void;
  onLost(reason: LossReason): void;
}

/** Clock rates of two machines may differ by this much, and a timer may be this late, before two processes trust one lease. */
const TRUSTED_SHARE = 0.99;
const TRUST_MARGIN_MS = 2;

/** Until when, on our own monotonic clock, a lease answered to a request sent at `sentAt` may be trusted. */
export function trustedUntil(sentAt: number, ttlMs: number): number {
  return sentAt + ttlMs * TRUSTED_SHARE - TRUST_MARGIN_MS;
}

const SHORTEST_RETRY_MS = 10;
const LONGEST_RETRY_MS = 1_000;

/**
 * Keeps a lease alive and says when it can no longer be trusted. Renewals go out at a third of the TTL, one at a time; a
 * failed one is repeated, in jeopardy, for as long as the lease is trusted. The end of trust comes from a timer of its own
 * and from a comparison of clocks, never from a reply: a server that says nothing is noticed as fast as one that says no.
 */
export class Watchdog implements RenewalListener {
  listener: WatchdogListener | undefined;
  readonly #ttlMs: number;
  #trustedUntil = NaN;
  #sentAt = NaN;
  #state: 'held' | 'jeopardy' | 'over' = 'held';
  /** Of the renewal in flight; else `NaN`. A field that is always a number is written in place, a hundred thousand times. */
  #renewalSentAt = NaN;
  #onRenewalOver: (() => void) | undefined;
  /** On the grid as long as all goes well, when the same two are enough for a thousand locks. */
  readonly #nextRenewal: GridTimer;
  readonly #alarm: GridTimer;
  #endOfTrust: Timer | undefined;
  readonly #revocation: AbortListener | undefined;

  constructor(
    readonly lease: Lease,
    private readonly renews: boolean,
    private readonly clock: Clock,
    grid: TimerGrid,
    /** How much longer than we trust it the server keeps the lease. */
    lockDelayMs = 0,
  ) {
    this.#nextRenewal = new GridTimer(grid, () => this.renewNow());
    this.#alarm = new GridTimer(grid, this.#onAlarm);
    this.#ttlMs = lease.ttlMs - lockDelayMs;
    this.#sentAt = lease.sentAt;
    this.#trustedUntil = trustedUntil(lease.sentAt, this.#ttlMs);
    if (lease.revoked?.aborted === false) this.#revocation = new AbortListener(lease.revoked, this.#onRevoked);
    this.#scheduleRenewal();
    this.#setAlarm();
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
    this.#setAlarm();
    this.listener?.onJeopardy(cause);
  }

  /** Asks the backend at once. While a renewal is in flight its answer serves. */
  renewNow(): void {
    if (this.#state === 'over' || !Number.isNaN(this.#renewalSentAt)) return;
    this.#nextRenewal.cancel();
    const sentAt = this.clock.now();
    if (sentAt >= this.#trustedUntil) return this.#lose('expired');
    this.#renewalSentAt = sentAt;
    try {
      if (this.lease.renewFor) this.lease.renewFor(this);
      else tell(this, this.lease.renew());
    } catch (error) {
      this.onFailure(error);
    }
  }

  /** Ends the watch; resolves when no renewal is in flight any more, if there is one. Bounded by the end of trust. */
  stop(): Promise<void> | undefined {
    this.#end();
    if (Number.isNaN(this.#renewalSentAt)) return undefined;
    return new Promise((resolve) => {
      const timer = this.clock.schedule(this.leftMs, resolve, { background: true });
      this.#onRenewalOver = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /** @internal Of the renewal in flight. */
  onAnswer(ours: boolean): void {
    const sentAt = this.#endRenewal();
    if (this.#state === 'over') return;
    if (!ours) return this.#lose('revoked');
    if (!this.trusted) return this.#lose('expired');
    this.#sentAt = sentAt;
    this.#trustedUntil = trustedUntil(sentAt, this.#ttlMs);
    if (this.#state === 'jeopardy') {
      this.#state = 'held';
      this.#setAlarm();
      this.listener?.onSafe();
    }
    this.#scheduleRenewal();
  }

  /** @internal Of the renewal in flight. */
  onFailure(error: unknown): void {
    this.#endRenewal();
    this.suspect(error);
    this.#retrySoon();
  }

  #endRenewal(): number {
    const sentAt = this.#renewalSentAt;
    this.#renewalSentAt = NaN;
    this.#onRenewalOver?.();
    return sentAt;
  }

  #scheduleRenewal(): void {
    if (!this.renews) return;
    const ttlMs = this.#ttlMs;
    this.#nextRenewal.setBy(this.#sentAt + ttlMs / 3, ttlMs / 24);
  }

  /** On the grid too: a thousand locks whose renewals failed share their next requests as well. */
  #retrySoon(): void {
    if (this.#state === 'over') return;
    const delayMs = Math.min(Math.max(this.#ttlMs / 20, SHORTEST_RETRY_MS), LONGEST_RETRY_MS);
    this.#nextRenewal.setFrom(this.clock.now() + delayMs, delayMs / 3);
  }

  /**
   * While all goes well the alarm looks whether the renewal is late, and moves with renewals only when it rings: renewing a
   * thousand locks touches no timer. Otherwise it rings at the end of trust.
   */
  #setAlarm(): void {
    this.#cancelAlarm();
    if (this.renews && this.#state === 'held') this.#alarm.setFrom(this.#lateFrom, this.#ttlMs / 12);
    else this.#endOfTrust = this.clock.schedule(this.leftMs, this.#onAlarm, { background: true });
  }

  get #lateFrom(): number {
    return this.#sentAt + (this.#ttlMs * 2) / 3;
  }

  readonly #onAlarm = (): void => {
    if (this.#state === 'over') return;
    const now = this.clock.now();
    if (now >= this.#trustedUntil) return this.#lose('expired');
    const late = this.renews && now >= this.#lateFrom;
    if (late && this.#state === 'held') this.suspect(new Error('the renewal is late'));
    else this.#setAlarm();
  };

  readonly #onRevoked = (): void => this.#lose('revoked');

  #lose(reason: LossReason): void {
    if (this.#state === 'over') return;
    this.#end();
    this.listener?.onLost(reason);
  }

  #end(): void {
    this.#state = 'over';
    this.#nextRenewal.cancel();
    this.#cancelAlarm();
    this.#revocation?.end();
  }

  #cancelAlarm(): void {
    this.#alarm.cancel();
    this.#endOfTrust?.cancel();
  }
}
