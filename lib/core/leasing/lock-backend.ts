import { isLockError, LockBackendError, NotSentError } from '../contract/errors.js';
import type { HealthSource } from '../contract/health.js';
import type { Guarantee, LeaseAttempt, LeaseStore } from '../contract/lease-store.js';
import { AbortListener } from '../time/abort-listener.js';
import { scheduleReplyTimeout } from '../time/reply-timeout.js';
import { LinkedQueue } from '../time/linked-queue.js';
import { assertTtl } from '../options/option-resolver.js';
import { type Clock, systemClock, type Timer } from '../time/timers.js';
import { CleanUps } from './clean-ups.js';
import { Contender, SILENCE_MS } from './contender.js';
import { ContenderContext, type PollingOptions } from './contender-context.js';
import { type AcquireRequest, NoAnswerYetError } from './lease-request.js';
import type { Lease } from './lease.js';
import { ObservedHealth } from './observed-health.js';
import { isFromServer, PendingAcquisition } from './pending-acquisition.js';

const CLOSED_MESSAGE =
  'the backend is closed, by the lock service or the application that owned it: give a factory, such as redis({ url }), to each new one';

/**
 * Maximum number of acquisitions that wait for their first answer. Sending 100,000 at once would double their memory,
 * and the server would answer no faster.
 */
const MAX_UNANSWERED = 5_000;

/**
 * Acquires the leases of a store, and handles lost replies, late replies and cancellations for all stores. An
 * acquisition that does not soon get a lease or a final refusal is passed to a `Contender`.
 */
export class LockBackend {
  readonly #contenderContext: ContenderContext;
  readonly #cleanUps: CleanUps;
  readonly #observedHealth: ObservedHealth;
  readonly #unsentAcquisitions = new LinkedQueue<PendingAcquisition>();
  /** Acquisitions that were sent less than `SILENCE_MS` ago, in order of sending. */
  readonly #recentAcquisitions = new LinkedQueue<PendingAcquisition>();
  /** Acquisitions without an answer that were sent at least `SILENCE_MS` ago. */
  readonly #overdueAcquisitions = new LinkedQueue<PendingAcquisition>();
  #unansweredCount = 0;
  #lastAnswerAt = -Infinity;
  #checkTimer: Timer | undefined;
  #isClosed = false;

  constructor(
    readonly store: LeaseStore,
    options: PollingOptions = {},
  ) {
    this.#cleanUps = new CleanUps(store);
    this.#observedHealth = new ObservedHealth(store, this.#cleanUps.add);
    this.#contenderContext = new ContenderContext(store, this.#cleanUps.add, this.#observedHealth, options);
  }

  /** Name of the store, for errors, events and metrics. */
  get name(): string {
    return this.store.name;
  }

  get guarantee(): Guarantee {
    return this.store.guarantee;
  }

  /** Health of the server, as far as this process knows without a request. */
  get health(): HealthSource {
    return this.#observedHealth;
  }

  /**
   * @internal Lets the store check its settings on the server. A server that cannot be used yet is reported in `health`
   * and to `onFailure`. @throws LockConfigurationError
   */
  async start(onFailure: (error: unknown) => void = () => undefined, clock = systemClock): Promise<void> {
    try {
      await this.store.start?.();
    } catch (error) {
      if (isLockError(error, 'LOCK_CONFIGURATION')) throw error;
      this.#observedHealth.noteFailedStart(error, clock);
      onFailure(error);
    }
  }

  /** @internal Awaits a reading that was sent to the store directly, and counts its outcome for `health`. */
  async awaitAndCountOutcome<T>(key: string, clock: Clock, request: Promise<T>): Promise<T> {
    try {
      const answer = await request;
      this.#observedHealth.noteCarriedOut('read');
      return answer;
    } catch (error) {
      this.#observedHealth.noteFailure(error, 'read', { key, clock });
      throw error;
    }
  }

  /**
   * @internal Resolves to a lease once the store has granted `key`, or to `null` when `request.deadline` passes first.
   * A deadline in the past means one attempt. If the caller gets no lease, leases and queue entries that may remain on
   * the server are released in the background.
   * @throws LockBackendError when the backend cannot answer; `request.signal.reason` when the caller gives up
   */
  acquire(key: string, request: AcquireRequest): Promise<Lease | null> {
    return new Promise<Lease | null>((resolve, reject) => {
      if (this.#isClosed) throw new Error(CLOSED_MESSAGE);
      assertTtl(request.ttlMs, this.store);
      const { signal, shouldYield = false, inheritsQueueEntry = false } = request;
      signal?.throwIfAborted();
      const acquisition = new PendingAcquisition(key, request, resolve, reject);
      if (shouldYield) return resolve(new Contender(this.#contenderContext, acquisition).run());
      if (signal) acquisition.abortListener = new AbortListener(signal, () => this.#cancel(acquisition, signal.reason));
      // An acquisition with an inherited queue entry does not wait unsent: its rejection would leave the entry behind.
      if (this.#unansweredCount < MAX_UNANSWERED || inheritsQueueEntry) this.#send(acquisition);
      else this.#unsentAcquisitions.push(acquisition);
      if (!this.#checkTimer) this.#scheduleCheck(SILENCE_MS, acquisition.clock);
    });
  }

  /** @internal Releases an inherited queue entry in the background. */
  leaveQueue(key: string, { owner, ttlMs, deadline }: AcquireRequest): void {
    this.#cleanUps.add({ key, owner, ttlMs, clock: deadline.clock });
  }

  /** @internal */
  rejectAll(reason: unknown): void {
    for (const queue of [this.#unsentAcquisitions, this.#recentAcquisitions, this.#overdueAcquisitions]) {
      for (let acquisition = queue.first; acquisition; acquisition = queue.first) this.#cancel(acquisition, reason);
    }
    for (const contender of this.#contenderContext.contenders) contender.cancel(reason);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#observedHealth.close();
    await this.#cleanUps.close();
    await this.store.close();
  }

  #send(acquisition: PendingAcquisition): void {
    this.#unansweredCount += 1;
    this.#recentAcquisitions.push(acquisition);
    acquisition.watchForWakeUp(this.store);
    const onAnswer = (attempt: LeaseAttempt): void => {
      if (isFromServer(attempt)) {
        this.#observedHealth.noteCarriedOut('acquire');
        this.#lastAnswerAt = acquisition.clock.now();
      }
      this.#onRequestEnd();
      this.#onAnswer(acquisition, attempt);
    };
    const onFailure = (error: unknown): void => {
      this.#contenderContext.noteFailure(error, acquisition);
      this.#onRequestEnd();
      this.#contend(acquisition);
    };
    acquisition.send(this.store).then(onAnswer, onFailure);
  }

  #onRequestEnd(): void {
    this.#unansweredCount -= 1;
    const nextAcquisition = this.#unsentAcquisitions.first;
    if (!nextAcquisition || this.#unansweredCount >= MAX_UNANSWERED) return;
    this.#unsentAcquisitions.delete(nextAcquisition);
    this.#send(nextAcquisition);
  }

  #onAnswer(acquisition: PendingAcquisition, attempt: LeaseAttempt): void {
    const times = attempt.acquired ? acquisition.leaseTimesOf(attempt) : undefined;
    if (attempt.acquired && times && acquisition.canTrust(attempt, times)) {
      if (!this.#tryRemove(acquisition)) return;
      acquisition.unwatch?.();
      acquisition.resolve(this.#contenderContext.createLease(acquisition, attempt, times));
    } else if (!attempt.acquired && acquisition.isFinalRefusal(attempt)) {
      if (!this.#tryRemove(acquisition)) return;
      acquisition.request.onBlocked?.(attempt.holder);
      acquisition.resolve(null);
    } else this.#contend(acquisition);
  }

  #scheduleCheck(delayMs: number, clock: Clock): void {
    this.#checkTimer = scheduleReplyTimeout(clock, delayMs, () => this.#checkPending(clock), { background: true });
  }

  /** Rejects acquisitions unsent for too long. Calls `#onOverdue` for each one unanswered for `SILENCE_MS`. */
  #checkPending(clock: Clock): void {
    this.#checkTimer = undefined;
    for (let acquisition = this.#unsentAcquisitions.first; acquisition;) {
      const { next } = acquisition;
      this.#rejectIfUnsentTooLong(acquisition);
      acquisition = next;
    }
    const overdueIfSentBy = clock.now() - SILENCE_MS;
    for (
      let first = this.#recentAcquisitions.first;
      first && first.requestedAt <= overdueIfSentBy;
      first = this.#recentAcquisitions.first
    ) {
      this.#recentAcquisitions.delete(first);
      this.#overdueAcquisitions.push(first);
      this.#onOverdue(first);
    }
    if (this.#unsentAcquisitions.first) this.#scheduleCheck(SILENCE_MS, clock);
    else if (this.#recentAcquisitions.first)
      this.#scheduleCheck(this.#recentAcquisitions.first.requestedAt - overdueIfSentBy, clock);
  }

  #rejectIfUnsentTooLong(acquisition: PendingAcquisition): void {
    const { key, isSingleAttempt, requestedAt, clock, deadline } = acquisition;
    const silentSince = Math.max(requestedAt, this.#lastAnswerAt);
    const hasWaitedTooLong = isSingleAttempt
      ? clock.now() >= silentSince + this.#contenderContext.patienceMs
      : deadline.passed;
    if (!hasWaitedTooLong) return;
    const cause = new NotSentError('very many acquisitions of this process wait for an answer already');
    this.#reject(acquisition, new LockBackendError(key, { backend: this.name, operation: 'acquire', cause }));
  }

  /** Reports the missing answer. Until the deadline a timer is enough, which takes less memory than a contender. */
  #onOverdue(acquisition: PendingAcquisition): void {
    const { isSingleAttempt, clock, deadline, request } = acquisition;
    request.onBlocked?.(new NoAnswerYetError());
    if (isSingleAttempt) return;
    const { passed, remainingMs } = deadline;
    if (passed) this.#contend(acquisition);
    else
      acquisition.deadlineTimer = clock.schedule(remainingMs, () => this.#contend(acquisition), { background: true });
  }

  #cancel(acquisition: PendingAcquisition, reason: unknown): void {
    if (acquisition.answer) this.#contend(acquisition);
    else this.#reject(acquisition, reason);
  }

  #contend(acquisition: PendingAcquisition): void {
    if (this.#tryRemove(acquisition)) acquisition.resolve(new Contender(this.#contenderContext, acquisition).run());
  }

  #reject(acquisition: PendingAcquisition, error: unknown): void {
    if (this.#tryRemove(acquisition)) acquisition.reject(error);
  }

  /** Removes the acquisition from its queue, or returns `false` if it was settled or passed to a contender before. */
  #tryRemove(acquisition: PendingAcquisition): boolean {
    if (!acquisition.queue) return false;
    acquisition.queue.delete(acquisition);
    acquisition.deadlineTimer?.cancel();
    acquisition.abortListener?.end();
    return true;
  }
}
