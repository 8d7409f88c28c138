import { LockBackendError, NotSentError } from '../contract/errors.js';
import type { HealthSource } from '../contract/health.js';
import type { Guarantee, LeaseAttempt, LeaseStore } from '../contract/lease-store.js';
import { AbortListener } from '../time/abort-listener.js';
import { LinkedQueue } from '../time/linked-queue.js';
import { assertTtl } from '../options/option-resolver.js';
import type { Clock, Timer } from '../time/timers.js';
import { CleanUps } from './clean-ups.js';
import { Contender, SILENCE_MS } from './contender.js';
import { ContenderContext, type PollingOptions } from './contender-context.js';
import type { AcquireRequest } from './lease-request.js';
import type { Lease } from './lease.js';
import { ObservedHealth } from './observed-health.js';
import { Question } from './question.js';

const CLOSED_MESSAGE =
  'the backend is closed, by the lock service or the application that owned it: give a factory, such as redis({ url }), to each new one';

/** Sending 100,000 questions at once would double their memory, and the server would answer no faster. */
const MAX_UNANSWERED = 5_000;

/**
 * Acquires the leases of a store, and handles lost replies, late replies and cancellations for all stores. Most
 * questions are soon answered with a lease; every other question is passed to a `Contender`.
 */
export class LockBackend {
  readonly #contenderContext: ContenderContext;
  readonly #cleanUps: CleanUps;
  readonly #observedHealth: ObservedHealth;
  readonly #unsentQuestions = new LinkedQueue<Question>();
  /** Questions that were sent less than `SILENCE_MS` ago, in order of sending. */
  readonly #recentQuestions = new LinkedQueue<Question>();
  /** Questions without an answer that were sent at least `SILENCE_MS` ago. */
  readonly #overdueQuestions = new LinkedQueue<Question>();
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

  /** Shown in errors, events and metrics. */
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

  /** @internal Counts the outcome of a request for `health`, where the request went to the store directly. */
  async noteOutcome<T>(key: string, clock: Clock, request: Promise<T>): Promise<T> {
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
   * A deadline in the past means one attempt. Without a lease nothing of the caller stays on the server. Leases and
   * queue entries that may remain are released in the background.
   * @throws LockBackendError when the backend cannot answer; `request.signal.reason` when the caller gives up
   */
  acquire(key: string, request: AcquireRequest): Promise<Lease | null> {
    return new Promise<Lease | null>((resolve, reject) => {
      if (this.#isClosed) throw new Error(CLOSED_MESSAGE);
      assertTtl(request.ttlMs, this.store);
      const { signal, shouldYield = false, inheritsQueueEntry = false } = request;
      signal?.throwIfAborted();
      const question = new Question(key, request, resolve, reject);
      if (shouldYield) return resolve(new Contender(this.#contenderContext, question).run());
      if (signal) question.abortListener = new AbortListener(signal, () => this.#cancel(question, signal.reason));
      // An unsent question is rejected without a clean-up, which an inherited queue entry would need.
      if (this.#unansweredCount < MAX_UNANSWERED || inheritsQueueEntry) this.#sendQuestion(question);
      else this.#unsentQuestions.push(question);
      if (!this.#checkTimer) this.#scheduleCheck(SILENCE_MS, question.clock);
    });
  }

  /** @internal Releases an inherited queue entry in the background. */
  leaveQueue(key: string, { owner, ttlMs, deadline }: AcquireRequest): void {
    this.#cleanUps.add({ key, owner, ttlMs, clock: deadline.clock });
  }

  /** @internal */
  rejectAll(reason: unknown): void {
    for (const queue of [this.#unsentQuestions, this.#recentQuestions, this.#overdueQuestions]) {
      for (let question = queue.first; question; question = queue.first) this.#cancel(question, reason);
    }
    for (const contender of this.#contenderContext.contenders) contender.cancel(reason);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#observedHealth.close();
    await this.#cleanUps.close();
    await this.store.close();
  }

  #sendQuestion(question: Question): void {
    this.#unansweredCount += 1;
    this.#recentQuestions.push(question);
    question.watchForWakeUp(this.store);
    const onAnswer = (attempt: LeaseAttempt): void => {
      this.#observedHealth.noteCarriedOut('acquire');
      this.#lastAnswerAt = question.clock.now();
      this.#onRequestEnd();
      this.#onAnswer(question, attempt);
    };
    const onFailure = (error: unknown): void => {
      this.#contenderContext.noteFailure(error, question);
      this.#onRequestEnd();
      this.#contend(question);
    };
    question.send(this.store).then(onAnswer, onFailure);
  }

  #onRequestEnd(): void {
    this.#unansweredCount -= 1;
    const nextQuestion = this.#unsentQuestions.first;
    if (!nextQuestion || this.#unansweredCount >= MAX_UNANSWERED) return;
    this.#unsentQuestions.delete(nextQuestion);
    this.#sendQuestion(nextQuestion);
  }

  #onAnswer(question: Question, attempt: LeaseAttempt): void {
    const times = attempt.acquired ? question.leaseTimesOf(attempt) : undefined;
    if (attempt.acquired && times && question.canTrust(attempt, times)) {
      if (!this.#tryRemove(question)) return;
      question.unwatch?.();
      question.resolve(this.#contenderContext.createLease(question, attempt, times));
    } else if (!attempt.acquired && question.isFinalRefusal(attempt)) {
      if (!this.#tryRemove(question)) return;
      question.request.onBlocked?.(attempt.holder);
      question.resolve(null);
    } else this.#contend(question);
  }

  #scheduleCheck(delayMs: number, clock: Clock): void {
    this.#checkTimer = clock.schedule(delayMs, () => this.#checkQuestions(clock), { background: true });
  }

  #checkQuestions(clock: Clock): void {
    this.#checkTimer = undefined;
    for (let question = this.#unsentQuestions.first; question;) {
      const { after } = question;
      this.#rejectIfNeverSent(question);
      question = after;
    }
    const overdueSince = clock.now() - SILENCE_MS;
    for (
      let first = this.#recentQuestions.first;
      first && first.askedAt <= overdueSince;
      first = this.#recentQuestions.first
    ) {
      this.#recentQuestions.delete(first);
      this.#overdueQuestions.push(first);
      this.#onOverdue(first);
    }
    if (this.#unsentQuestions.first) this.#scheduleCheck(SILENCE_MS, clock);
    else if (this.#recentQuestions.first)
      this.#scheduleCheck(this.#recentQuestions.first.askedAt - overdueSince, clock);
  }

  #rejectIfNeverSent(question: Question): void {
    const { key, isSingleAttempt, askedAt, clock, deadline } = question;
    const waitsSince = Math.max(askedAt, this.#lastAnswerAt);
    const hasWaitedTooLong = isSingleAttempt
      ? clock.now() >= waitsSince + this.#contenderContext.patienceMs
      : deadline.passed;
    if (!hasWaitedTooLong) return;
    const cause = new NotSentError('very many acquisitions of this process wait for an answer already');
    this.#reject(question, new LockBackendError(key, { backend: this.name, operation: 'acquire', cause }));
  }

  /** Sets a timer for the deadline, which takes less memory than a contender. */
  #onOverdue(question: Question): void {
    const { isSingleAttempt, clock, deadline } = question;
    if (isSingleAttempt) return;
    const { passed, remainingMs } = deadline;
    if (passed) this.#contend(question);
    else question.deadlineTimer = clock.schedule(remainingMs, () => this.#contend(question), { background: true });
  }

  #cancel(question: Question, reason: unknown): void {
    if (question.answer) this.#contend(question);
    else this.#reject(question, reason);
  }

  #contend(question: Question): void {
    if (this.#tryRemove(question)) question.resolve(new Contender(this.#contenderContext, question).run());
  }

  #reject(question: Question, error: unknown): void {
    if (this.#tryRemove(question)) question.reject(error);
  }

  /** Returns `false` if the question was settled or passed to a contender before. */
  #tryRemove(question: Question): boolean {
    if (!question.queue) return false;
    question.queue.delete(question);
    question.deadlineTimer?.cancel();
    question.abortListener?.end();
    return true;
  }
}
