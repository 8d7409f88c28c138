import { AbortListener } from '../time/abort-listener.js';
import type { LossReason } from '../contract/errors.js';
import type { Lease } from '../leasing/lease.js';
import { getEndOfTrust } from '../leasing/trust.js';
import { WheelTimer, type TimerWheel } from '../time/timer-wheel.js';
import type { Clock, Timer } from '../time/timers.js';

/**
 * Listener to the state of a lease. In jeopardy the lease is still trusted, but a renewal has failed or is late.
 * `onLost` is called at most once, and never after `Watchdog.stop`.
 */
export interface WatchdogListener {
  onJeopardy(cause?: unknown): void;
  onSafe(): void;
  onLost(reason: LossReason): void;
}

/** Delay of the first renewal if the store watches a lease only after it. Most locks end sooner and need no renewal. */
const FIRST_RENEWAL_MS = 15;
const MIN_RETRY_MS = 10;
const MAX_RETRY_MS = 1_000;

/**
 * Renews a lease every third of its TTL, one renewal at a time. Trust ends by the local clock alone, without an answer
 * of the server.
 */
export class Watchdog {
  listener: WatchdogListener | undefined;
  readonly grantedAt: number;
  #trustedUntil: number;
  #trustedFrom: number;
  #state: 'held' | 'jeopardy' | 'over' = 'held';
  /** Time at which the unanswered renewal was sent, or `undefined` if there is none. */
  #renewalSentAt: number | undefined;
  #onRenewalEnd: (() => void) | undefined;
  /** Whether to renew again after the unanswered renewal, which was sent before the latest demand for a renewal. */
  #mustRenewOnceMore = false;
  /** Timer for the next renewal, or for the time from which an unanswered one is late. */
  readonly #timer: WheelTimer;
  #endOfTrustTimer: Timer | undefined;
  readonly #revocationListener: AbortListener | undefined;

  constructor(
    readonly lease: Lease,
    private readonly shouldRenew: boolean,
    private readonly clock: Clock,
    timerWheel: TimerWheel,
    /** Whether the store watches the lease only after its first renewal. */
    isWatchedOnlyAfterRenewal = false,
  ) {
    this.grantedAt = clock.now();
    this.#timer = new WheelTimer(timerWheel, () => this.#onTimer());
    this.#trustedFrom = lease.times.sentAt;
    this.#trustedUntil = getEndOfTrust(this.#trustedFrom, this.#trustedMs);
    const { revoked } = lease;
    lease.onNotRenewed = () => this.#onLeaseEnd();
    if (revoked?.aborted === false)
      this.#revocationListener = new AbortListener(revoked, () => this.#endAsLost('revoked'));
    // With a short TTL the usual renewal is early enough.
    const isUsualRenewalLate = this.#trustedFrom + this.#trustedMs / 3 > this.grantedAt + 2 * FIRST_RENEWAL_MS;
    if (shouldRenew && isWatchedOnlyAfterRenewal && isUsualRenewalLate)
      this.#timer.setAtOrAfter(this.grantedAt + FIRST_RENEWAL_MS, FIRST_RENEWAL_MS);
    else if (shouldRenew) this.#scheduleRenewal();
    else this.#scheduleEndOfTrust();
  }

  /** Whether the lease is trusted, exact even right after the event loop was blocked: each call reads the clock. */
  get isTrusted(): boolean {
    return this.#state !== 'over' && this.lease.revoked?.aborted !== true && this.clock.now() < this.#trustedUntil;
  }

  get isInJeopardy(): boolean {
    return this.#state === 'jeopardy';
  }

  /** Milliseconds until the lease is no longer trusted. */
  get leftMs(): number {
    return Math.max(0, this.#trustedUntil - this.clock.now());
  }

  putInJeopardy(cause?: unknown): void {
    if (this.#state !== 'held') return;
    // After a blocked event loop the next holder may already have the key.
    if (this.clock.now() >= this.#trustedUntil) return this.#endAsLost('expired');
    this.#state = 'jeopardy';
    this.#scheduleEndOfTrust();
    this.listener?.onJeopardy(cause);
  }

  renewNow(): void {
    if (this.#state === 'over' || this.#renewalSentAt !== undefined) return;
    const sentAt = this.clock.now();
    if (sentAt >= this.#trustedUntil) return this.#endAsLost('expired');
    this.#renewalSentAt = sentAt;
    this.#timer.setAtOrAfter(this.#renewalLateAt, this.#trustedMs / 12);
    const onFailure = (error: unknown): void => this.#onFailure(error);
    try {
      this.lease.renew().then((isStillHeld) => this.#onAnswer(isStillHeld), onFailure);
    } catch (error) {
      onFailure(error);
    }
  }

  /** Renews the lease at once, or as soon as an unanswered renewal is answered. */
  renewWithNewRequest(): void {
    this.#mustRenewOnceMore = this.#renewalSentAt !== undefined;
    this.renewNow();
  }

  revoke(): void {
    this.#endAsLost('revoked');
  }

  /**
   * Stops the renewals and all calls of the listener. Returns a promise if a renewal is unanswered. The promise
   * resolves after the answer, at the latest at the end of trust.
   */
  stop(): Promise<void> | undefined {
    this.#endWatch();
    if (this.#renewalSentAt === undefined) return undefined;
    return new Promise((resolve) => {
      const timer = this.clock.schedule(this.leftMs, resolve, { background: true });
      this.#onRenewalEnd = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  #onAnswer(isStillHeld: boolean): void {
    const sentAt = this.#finishRenewal();
    if (this.#state === 'over') return;
    if (!isStillHeld) return this.#endAsLost('revoked');
    if (!this.isTrusted) return this.#endAsLost('expired');
    this.#trustedFrom = sentAt;
    this.#trustedUntil = getEndOfTrust(sentAt, this.#trustedMs);
    if (this.#state === 'jeopardy') {
      this.#state = 'held';
      if (this.shouldRenew) this.#endOfTrustTimer?.cancel();
      else this.#scheduleEndOfTrust();
      this.listener?.onSafe();
    }
    if (this.#mustRenewOnceMore) this.renewWithNewRequest();
    else this.#scheduleRenewal();
  }

  #onFailure(error: unknown): void {
    this.#finishRenewal();
    this.putInJeopardy(error);
    this.#scheduleRetry();
  }

  /** Records that the pending renewal has ended, and returns the time at which it was sent. */
  #finishRenewal(): number {
    const sentAt = this.#renewalSentAt ?? this.#trustedFrom;
    this.#renewalSentAt = undefined;
    this.#onRenewalEnd?.();
    return sentAt;
  }

  get #trustedMs(): number {
    return this.lease.times.trustedMs;
  }

  #scheduleRenewal(): void {
    if (this.shouldRenew) this.#timer.setAtOrBefore(this.#trustedFrom + this.#trustedMs / 3, this.#trustedMs / 24);
  }

  #scheduleRetry(): void {
    if (this.#state === 'over') return;
    const delayMs = Math.min(Math.max(this.#trustedMs / 20, MIN_RETRY_MS), MAX_RETRY_MS);
    this.#timer.setAtOrAfter(this.clock.now() + delayMs, delayMs / 3);
  }

  get #renewalLateAt(): number {
    return this.#trustedFrom + (this.#trustedMs * 2) / 3;
  }

  #onTimer(): void {
    if (this.#renewalSentAt === undefined) this.renewNow();
    else if (this.shouldRenew) this.putInJeopardy(new Error('the renewal is late'));
  }

  /** Sets an exact timer for the end of trust. Only a lease in jeopardy or without renewals needs one. */
  #scheduleEndOfTrust(): void {
    this.#endOfTrustTimer?.cancel();
    const onEnd = (): void =>
      this.clock.now() < this.#trustedUntil ? this.#scheduleEndOfTrust() : this.#endAsLost('expired');
    this.#endOfTrustTimer = this.clock.schedule(this.leftMs, onEnd, { background: true });
  }

  /** Reports the lease as expired. Returns `false` if the watch was over before: the lease then releases itself. */
  #onLeaseEnd(): boolean {
    if (this.#state === 'over') return false;
    this.#endAsLost('expired');
    return true;
  }

  #endAsLost(reason: LossReason): void {
    if (this.#state === 'over') return;
    this.#endWatch();
    this.listener?.onLost(reason);
  }

  #endWatch(): void {
    this.#state = 'over';
    this.#timer.cancel();
    this.#endOfTrustTimer?.cancel();
    this.#revocationListener?.end();
  }
}
