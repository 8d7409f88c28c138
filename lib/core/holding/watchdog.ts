import { AbortListener } from '../time/abort-listener.js';
import type { LossReason } from '../contract/errors.js';
import type { Lease } from '../leasing/lease.js';
import { trustedUntil } from '../leasing/trust.js';
import { WheelTimer, type TimerWheel } from '../time/timer-wheel.js';
import type { Clock, Timer } from '../time/timers.js';

/** Receiver of what a watchdog finds. `onLost` is called once, or never if the watchdog was stopped first. */
export interface WatchdogListener {
  onJeopardy(cause?: unknown): void;
  onSafe(): void;
  onLost(reason: LossReason): void;
}

/** Time after a grant by which the lease is renewed if its store watches renewed leases. Most locks are released earlier. */
const FIRST_RENEWAL_MS = 15;
const MIN_RETRY_MS = 10;
const MAX_RETRY_MS = 1_000;

/**
 * Keeps a lease alive and tells when it can no longer be trusted. Renewals go out at a third of the TTL, one at a time. One
 * that fails is repeated, in jeopardy, for as long as the lease is trusted. The end of trust needs no reply: it comes from
 * a timer and from a comparison of clocks. A silent server is therefore noticed as fast as one that refuses.
 */
export class Watchdog {
  listener: WatchdogListener | undefined;
  /** Time at which this process got the lease. */
  readonly since: number;
  #trustedUntil: number;
  #sentAt: number;
  #state: 'held' | 'jeopardy' | 'over' = 'held';
  /** Time at which the renewal under way was sent. */
  #renewalSentAt: number | undefined;
  #onRenewalOver: (() => void) | undefined;
  /** Whether the server must be asked once more, because the answer under way may be older than the doubt. */
  #mustRenewAgain = false;
  /** Timer for the next renewal, or for the check whether one under way is late. Many locks share its times. */
  readonly #timer: WheelTimer;
  #endOfTrust: Timer | undefined;
  readonly #revocation: AbortListener | undefined;

  constructor(
    readonly lease: Lease,
    private readonly renews: boolean,
    private readonly clock: Clock,
    grid: TimerWheel,
    /** Whether the store watches the lease from its first renewal on. */
    isWatchedOnceRenewed = false,
  ) {
    this.since = clock.now();
    this.#timer = new WheelTimer(grid, () => this.#onTime());
    this.#sentAt = lease.times.sentAt;
    this.#trustedUntil = trustedUntil(this.#sentAt, this.#trustedMs);
    const { revoked } = lease;
    lease.onEnd = () => this.#endWithLease();
    if (revoked?.aborted === false) this.#revocation = new AbortListener(revoked, () => this.#lose('revoked'));
    // A renewal that is due at a third of a short TTL is earlier.
    const isLongEnough = this.#sentAt + this.#trustedMs / 3 > this.since + 2 * FIRST_RENEWAL_MS;
    if (renews && isWatchedOnceRenewed && isLongEnough)
      this.#timer.setFrom(this.since + FIRST_RENEWAL_MS, FIRST_RENEWAL_MS);
    else if (renews) this.#scheduleRenewal();
    else this.#scheduleEndOfTrust();
  }

  /** Whether the lease is trusted, exact now, also in the first synchronous step after a stalled event loop. */
  get isTrusted(): boolean {
    return this.#state !== 'over' && this.lease.revoked?.aborted !== true && this.clock.now() < this.#trustedUntil;
  }

  get isInJeopardy(): boolean {
    return this.#state === 'jeopardy';
  }

  /** Milliseconds until the lease is no longer trusted, unless a renewal succeeds first. */
  get leftMs(): number {
    return Math.max(0, this.#trustedUntil - this.clock.now());
  }

  /** Doubts the lease until the next answer, because the connection dropped, a server changed its role, or the like. */
  suspect(cause?: unknown): void {
    if (this.#state !== 'held') return;
    this.#state = 'jeopardy';
    this.#scheduleEndOfTrust();
    this.listener?.onJeopardy(cause);
  }

  /** Renews the lease at once, unless a renewal is under way. */
  renewNow(): void {
    if (this.#state === 'over' || this.#renewalSentAt !== undefined) return;
    const sentAt = this.clock.now();
    if (sentAt >= this.#trustedUntil) return this.#lose('expired');
    this.#renewalSentAt = sentAt;
    this.#timer.setFrom(this.#lateFrom, this.#trustedMs / 12);
    const onFailure = (error: unknown): void => this.#onFailure(error);
    try {
      this.lease.renew().then((isOurs) => this.#onAnswer(isOurs), onFailure);
    } catch (error) {
      onFailure(error);
    }
  }

  /** Renews the lease at once, and once more after a renewal that is under way. */
  renewAnew(): void {
    this.#mustRenewAgain = this.#renewalSentAt !== undefined;
    this.renewNow();
  }

  /** Ends the trust in the lease at once: its server says that it has ended. */
  revoke(): void {
    this.#lose('revoked');
  }

  /** Ends the watch. Resolves when the renewal under way, if any, is over, or at the end of trust. */
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

  #onAnswer(isOurs: boolean): void {
    const sentAt = this.#endRenewal();
    if (this.#state === 'over') return;
    if (!isOurs) return this.#lose('revoked');
    if (!this.isTrusted) return this.#lose('expired');
    this.#sentAt = sentAt;
    this.#trustedUntil = trustedUntil(sentAt, this.#trustedMs);
    if (this.#state === 'jeopardy') {
      this.#state = 'held';
      if (this.renews) this.#endOfTrust?.cancel();
      else this.#scheduleEndOfTrust();
      this.listener?.onSafe();
    }
    if (this.#mustRenewAgain) this.renewAnew();
    else this.#scheduleRenewal();
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

  /** Schedules a renewal after one that failed, at a time that many locks share. */
  #retrySoon(): void {
    if (this.#state === 'over') return;
    const delayMs = Math.min(Math.max(this.#trustedMs / 20, MIN_RETRY_MS), MAX_RETRY_MS);
    this.#timer.setFrom(this.clock.now() + delayMs, delayMs / 3);
  }

  /** Time from which a renewal under way is late. */
  get #lateFrom(): number {
    return this.#sentAt + (this.#trustedMs * 2) / 3;
  }

  #onTime(): void {
    if (this.#renewalSentAt === undefined) this.renewNow();
    else if (this.renews) this.suspect(new Error('the renewal is late'));
  }

  /** Sets a timer for the end of trust, to the millisecond. Only doubt, or a lease that is not renewed, needs it. */
  #scheduleEndOfTrust(): void {
    this.#endOfTrust?.cancel();
    const onEnd = (): void =>
      this.clock.now() < this.#trustedUntil ? this.#scheduleEndOfTrust() : this.#lose('expired');
    this.#endOfTrust = this.clock.schedule(this.leftMs, onEnd, { background: true });
  }

  /** Returns whether the lease's own end was news: after a stall it may come before an answer to a late renewal. */
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
