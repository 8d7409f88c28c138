import { AbortListener } from '../time/abort-listener.js';
import { isLockError, LockBackendError, NotSentError } from '../contract/errors.js';
import { failureKindOf } from '../contract/failure-kind.js';
import type { ContenderContext } from './contender-context.js';
import type { LeaseAttempt, RefusedLease } from '../contract/lease-store.js';
import type { Lease } from './lease.js';
import { NO_ANSWER_TEXT, NoAnswerYetError } from './lease-request.js';
import { schedulePauseEnd } from './pause-end.js';
import { scheduleReplyTimeout } from '../time/reply-timeout.js';
import type { Timer } from '../time/timers.js';
import { assertLockDelay } from '../options/option-resolver.js';
import { isFromServer, type PendingAcquisition } from './pending-acquisition.js';
import { DELAY_AFTER_EXPIRY_MS } from './wake-ups.js';

/** Time within which a healthy store answers. A longer silence is handled as a possible failure. */
export const SILENCE_MS = 100;
const FIRST_RETRY_MS = 20;
const MAX_RETRY_MS = 500;

const doNothing = (): void => undefined;

/** Continues an acquisition that got no lease at once: polls, repeats failed requests, and cleans up at the end. */
export class Contender {
  /** Whether the server may keep a lease or a queue entry for the owner. */
  #mayNeedCleanUp: boolean;
  #isRequestPending = false;
  /** Request that must end before a clean-up: a release that overtakes the request would free nothing. */
  #lastAttempt: Promise<unknown> | undefined;
  #abortListener: AbortListener | undefined;
  /** The reason why the caller no longer wants the lease: its abort, or the end of the service. */
  #cancellation: { readonly reason: unknown } | undefined;
  #hasQueueEntry = false;
  #endPause: () => void = doNothing;
  /** Ends the pause or the wait for an answer. */
  #endWait: () => void = doNothing;
  #slowestRefusalMs: number | undefined;
  #failureStreak: { readonly since: number; readonly count: number; readonly error: unknown } | undefined;
  /** The reason why the store could not ask its server yet, see `RefusedLease.obstacle`. */
  #obstacle: Error | undefined;

  constructor(
    private readonly context: ContenderContext,
    private readonly acquisition: PendingAcquisition,
  ) {
    this.#mayNeedCleanUp = acquisition.request.inheritsQueueEntry === true;
  }

  async run(): Promise<Lease | null> {
    const { context, acquisition } = this;
    const { key, isSingleAttempt, answer, request } = acquisition;
    let lease: Lease | null = null;
    context.contenders.add(this);
    try {
      this.#startListening();
      if (request.shouldYield === true && !isSingleAttempt && !acquisition.unwatch) await this.#waitForOtherProcesses();
      let leaseOrDelayMs = await this.#attempt(answer);
      while (typeof leaseOrDelayMs === 'number')
        leaseOrDelayMs = isSingleAttempt ? null : await this.#attemptAfter(leaseOrDelayMs);
      lease = leaseOrDelayMs;
      return lease;
    } catch (error) {
      if (isLockError(error) || error === this.#cancellation?.reason) throw error;
      throw new LockBackendError(key, { backend: context.store.name, operation: 'acquire', cause: error });
    } finally {
      context.contenders.delete(this);
      acquisition.hasContenderEnded = true;
      acquisition.unwatch?.();
      this.#abortListener?.end();
      const needsCleanUp = !lease && this.#mayNeedCleanUp;
      if (needsCleanUp && !this.#tryHandOffQueueEntry()) this.#releaseInBackground();
    }
  }

  #releaseInBackground(): void {
    const { key, owner, ttlMs, clock } = this.acquisition;
    this.context.releaseInBackground({ key, owner, ttlMs, clock }, this.#lastAttempt);
  }

  #startListening(): void {
    const { acquisition } = this;
    const { signal } = acquisition.request;
    acquisition.onWake = () => this.#endPause();
    if (signal?.aborted === true) this.cancel(signal.reason);
    // If a request was sent before, a cancellation must not throw yet: `#attempt` first records this request for the
    // clean-up.
    if (!acquisition.answer) {
      this.#throwIfCancelled();
      acquisition.watchForWakeUp(this.context.store);
    }
    if (signal?.aborted === false) this.#abortListener = new AbortListener(signal, () => this.cancel(signal.reason));
  }

  cancel(reason: unknown): void {
    this.#cancellation ??= { reason };
    this.#endWait();
  }

  #tryHandOffQueueEntry(): boolean {
    return this.#hasQueueEntry && !this.#isRequestPending && this.acquisition.request.handOffQueueEntry?.() === true;
  }

  #throwIfCancelled(): void {
    if (this.#cancellation) throw this.#cancellation.reason;
  }

  /**
   * Waits for the longest polling interval, but at most half of the remaining time, so that other processes can ask
   * first.
   */
  async #waitForOtherProcesses(): Promise<void> {
    await this.#pauseFor(
      Math.min(this.context.pollMs * 1.5 + DELAY_AFTER_EXPIRY_MS, this.acquisition.deadline.remainingMs / 2),
    );
    this.#throwIfCancelled();
  }

  async #attemptAfter(delayMs: number): Promise<Lease | null | number> {
    await this.#pauseFor(delayMs);
    this.#throwIfCancelled();
    return this.acquisition.deadline.passed ? this.#getResultAtDeadline() : this.#attempt();
  }

  /** @throws the latest failure of the backend, if there is one */
  #getResultAtDeadline(): null {
    if (this.#failureStreak) throw this.#failureStreak.error;
    if (this.#obstacle) throw this.#obstacle;
    return null;
  }

  /** Resolves to a lease, to `null` at the deadline, or to the milliseconds until the next attempt. */
  #attempt(pendingAnswer?: Promise<LeaseAttempt>): Promise<Lease | null | number> {
    const { acquisition } = this;
    const neededCleanUpBefore = this.#mayNeedCleanUp;
    if (!pendingAnswer) acquisition.wasWoken = false;
    this.#mayNeedCleanUp = true;
    this.#isRequestPending = true;
    const answer = pendingAnswer ?? this.#send();
    // If the last attempt proves unsent, the clean-up is skipped, unless an earlier request needs it.
    this.#lastAttempt = neededCleanUpBefore ? answer.catch(doNothing) : answer;
    return this.#awaitAnswer(answer).then(
      (attempt) => attempt && this.#onAnswer(attempt),
      (error: unknown) => {
        if (error instanceof NotSentError) this.#mayNeedCleanUp = neededCleanUpBefore;
        return this.#onFailure(error);
      },
    );
  }

  #send(): Promise<LeaseAttempt> {
    const { context, acquisition } = this;
    const answer = acquisition.send(context.store);
    answer.then(
      (attempt) => isFromServer(attempt) && context.observedHealth.noteCarriedOut('acquire'),
      (error: unknown) => context.noteFailure(error, acquisition),
    );
    return answer;
  }

  #onAnswer(answer: LeaseAttempt): Lease | null | number {
    const { context, acquisition } = this;
    if (!answer.acquired) return acquisition.request.transferredLease ? null : this.#onRefusal(answer);
    const times = acquisition.leaseTimesOf(answer);
    assertLockDelay(acquisition.request.untrustedMs ?? 0, times.serverTtlMs, context.store);
    if (acquisition.canTrust(answer, times))
      return context.createLease(acquisition, answer, times, this.#hasQueueEntry);
    return this.#onFailure(new Error('the answer came after the lease had ended'));
  }

  #onRefusal({ retryAfterMs, holder, obstacle, staysInLine = false }: RefusedLease): number {
    const { clock, request, sentAt, unwatch } = this.acquisition;
    this.#slowestRefusalMs = Math.max(this.#slowestRefusalMs ?? 0, clock.now() - sentAt);
    this.#failureStreak = undefined;
    this.#obstacle = obstacle;
    this.#isRequestPending = false;
    this.#hasQueueEntry = unwatch !== undefined;
    this.#mayNeedCleanUp = this.#hasQueueEntry || staysInLine || request.inheritsQueueEntry === true;
    request.onBlocked?.(obstacle ?? holder);
    const { pollMs, random } = this.context;
    const jitteredPollMs = pollMs / 2 + random() * pollMs;
    return retryAfterMs === null ? jitteredPollMs : Math.min(jitteredPollMs, retryAfterMs + DELAY_AFTER_EXPIRY_MS);
  }

  /** Returns the milliseconds until the next attempt. Rethrows the error if another attempt cannot help in time. */
  #onFailure(error: unknown): number {
    const { clock, deadline, request } = this.acquisition;
    const now = clock.now();
    const { since, count: previousFailureCount } = this.#failureStreak ?? { since: now, count: 0 };
    this.#failureStreak = { since, count: previousFailureCount + 1, error };
    request.onBlocked?.(error instanceof Error ? error : new Error(String(error)));
    const isPatienceOver = now - since >= this.context.patienceMs;
    const isFinal = isLockError(error) || failureKindOf(error) === 'value';
    if (deadline.passed || isPatienceOver || isFinal || this.#cancellation) throw error;
    return Math.min(FIRST_RETRY_MS * 2 ** previousFailureCount, MAX_RETRY_MS) + this.context.random() * FIRST_RETRY_MS;
  }

  async #pauseFor(delayMs: number): Promise<void> {
    if (this.acquisition.wasWoken || this.#cancellation) return;
    await new Promise<void>((resolve) => {
      const timer = schedulePauseEnd(delayMs, this.acquisition.deadline, resolve);
      this.#endPause = () => {
        timer.cancel();
        resolve();
      };
      this.#endWait = this.#endPause;
    });
  }

  /**
   * Settles as `answer` does, or rejects at a cancellation. A waiting caller gives up at the deadline, or `SILENCE_MS`
   * after the request if that is later. The result is `null` if earlier refusals were as slow, or else a rejection.
   */
  #awaitAnswer<T>(answer: Promise<T>): Promise<T | null> {
    const { requestedAt, clock, deadline, isSingleAttempt } = this.acquisition;
    return new Promise((resolve, reject) => {
      const giveUp = (): void =>
        this.#isMerelySlow(clock.now() - requestedAt) ? resolve(null) : reject(new Error(NO_ANSWER_TEXT));
      const giveUpAfterMs = Math.max(deadline.at, requestedAt + SILENCE_MS) - clock.now();
      const schedule = (delayMs: number, onTimeout: () => void): Timer | undefined =>
        isSingleAttempt ? undefined : scheduleReplyTimeout(clock, delayMs, onTimeout, { background: true });
      const timers = [schedule(this.#maxHealthySilenceMs, this.#reportSilence), schedule(giveUpAfterMs, giveUp)];
      const endWith = (settle: () => void): void => {
        for (const timer of timers) timer?.cancel();
        settle();
      };
      this.#endWait = () => endWith(() => reject(this.#cancellation?.reason));
      if (this.#cancellation) return this.#endWait();
      answer.then(
        (value) => endWith(() => resolve(value)),
        (error: unknown) => endWith(() => reject(error)),
      );
    });
  }

  #isMerelySlow(silentMs: number): boolean {
    return !this.#lastTrouble && this.#slowestRefusalMs !== undefined && silentMs <= this.#maxHealthySilenceMs;
  }

  get #lastTrouble(): unknown {
    return this.#failureStreak ?? this.#obstacle;
  }

  get #maxHealthySilenceMs(): number {
    return SILENCE_MS + 2 * (this.#slowestRefusalMs ?? 0);
  }

  /** Reports that a missing answer, not a holder, may be why callers behind this one wait, until the next answer. */
  readonly #reportSilence = (): void => {
    if (!this.#lastTrouble) this.acquisition.request.onBlocked?.(new NoAnswerYetError());
  };
}
