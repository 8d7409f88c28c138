import { LockBackendError, NotSentError } from '../contract/errors.js';
import type { HealthSource } from '../contract/health.js';
import type { Guarantee, LeaseAttempt, LeaseStore } from '../contract/lease-store.js';
import { AbortListener } from '../time/abort-listener.js';
import { LinkedQueue } from '../time/linked-queue.js';
import { assertTtl } from '../options/option-resolver.js';
import type { Clock, Timer } from '../time/timers.js';
import { CleanUps } from './clean-ups.js';
import { Contender, SILENCE_MS } from './contender.js';
import { Contending, type PollingOptions } from './contending.js';
import type { AcquireRequest } from './lease-request.js';
import type { Lease } from './lease.js';
import { Outcomes } from './outcomes.js';
import { Question } from './question.js';

const CLOSED =
  'the backend is closed, by the lock service or the application that owned it: give a factory, such as redis({ url }), to each new one';

/**
 * Maximum number of first questions of a process under way at a time. 100,000 with all that they need would take 0.4 GB.
 * Questions that are not sent yet take half of that, and a server is no slower for it.
 */
const MAX_UNDER_WAY = 5_000;

/**
 * Acquires the leases of a store. Lost replies, late replies and giving up are handled here, once for all stores. Most
 * questions are answered by a lease soon; any other one is handed to a `Contender`.
 */
export class LockBackend {
  readonly #contending: Contending;
  readonly #cleanUps: CleanUps;
  readonly #outcomes: Outcomes;
  /** Questions that wait until fewer are under way, in order of arrival. */
  readonly #unsent = new LinkedQueue<Question>();
  /** Questions that were sent less than `SILENCE_MS` ago, in that order. */
  readonly #recent = new LinkedQueue<Question>();
  /** Questions without an answer for longer. Each may wait until its own deadline. */
  readonly #overdue = new LinkedQueue<Question>();
  #underWay = 0;
  #lastAnswerAt = -Infinity;
  /** Timer for the next check of all questions. */
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(
    readonly store: LeaseStore,
    options: PollingOptions = {},
  ) {
    this.#cleanUps = new CleanUps(store);
    this.#outcomes = new Outcomes(store, this.#cleanUps.add);
    this.#contending = new Contending(store, this.#cleanUps.add, this.#outcomes, options);
  }

  /** Shown in errors, events and metrics. */
  get name(): string {
    return this.store.name;
  }

  get guarantee(): Guarantee {
    return this.store.guarantee;
  }

  /** Whether the server can be reached and carries requests out, as far as this process knows without asking. */
  get health(): HealthSource {
    return this.#outcomes;
  }

  /** @internal Counts the outcome of a request that did not go through this backend, such as a reading, for `health`. */
  async noteOutcome<T>(key: string, clock: Clock, request: Promise<T>): Promise<T> {
    try {
      const answer = await request;
      this.#outcomes.noteCarriedOut('read');
      return answer;
    } catch (error) {
      this.#outcomes.noteFailure(error, 'read', { key, clock });
      throw error;
    }
  }

  /**
   * @internal Resolves to a lease once the store has granted `key`, or to `null` when `request.deadline` passes first. A
   * deadline that is past already means one attempt. Without a lease nothing of the caller stays behind on the server:
   * what cannot be taken back at once is taken back in the background.
   * @throws LockBackendError when the backend cannot answer; `request.signal.reason` when the caller gives up
   */
  acquire(key: string, request: AcquireRequest): Promise<Lease | null> {
    return new Promise<Lease | null>((resolve, reject) => {
      if (this.#isClosed) throw new Error(CLOSED);
      assertTtl(request.ttlMs, this.store);
      const { signal, yields = false, inherited = false } = request;
      signal?.throwIfAborted();
      const question = new Question(key, request, resolve, reject);
      if (yields) return resolve(new Contender(this.#contending, question).run());
      if (signal) question.abortListener = new AbortListener(signal, () => this.#callOff(question, signal.reason));
      // An inherited queue entry is on the server already, and would have to be cleaned up.
      if (this.#underWay < MAX_UNDER_WAY || inherited) this.#send(question);
      else this.#unsent.push(question);
      if (!this.#timer) this.#scheduleCheck(SILENCE_MS, question.clock);
    });
  }

  /** @internal Takes a queue entry off the server in the background, for a caller who inherited it and will not ask. */
  leaveQueue(key: string, { owner, ttlMs, deadline }: AcquireRequest): void {
    this.#cleanUps.add({ key, owner, ttlMs, clock: deadline.clock });
  }

  /** @internal Rejects all questions with this reason. */
  dismiss(reason: unknown): void {
    for (const queue of [this.#unsent, this.#recent, this.#overdue]) {
      for (let question = queue.first; question; question = queue.first) this.#callOff(question, reason);
    }
    for (const contender of this.#contending.contenders) contender.callOff(reason);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#outcomes.close();
    await this.#cleanUps.close();
    await this.store.close();
  }

  #send(question: Question): void {
    this.#underWay += 1;
    this.#recent.push(question);
    question.watch(this.store);
    const onAnswer = (attempt: LeaseAttempt): void => {
      this.#outcomes.noteCarriedOut('take');
      this.#lastAnswerAt = question.clock.now();
      this.#sendNext();
      this.#onAnswer(question, attempt);
    };
    const onFailure = (error: unknown): void => {
      this.#contending.noteFailure(error, question);
      this.#sendNext();
      this.#contend(question);
    };
    question.ask(this.store).then(onAnswer, onFailure);
  }

  #sendNext(): void {
    this.#underWay -= 1;
    const next = this.#unsent.first;
    if (!next || this.#underWay >= MAX_UNDER_WAY) return;
    this.#unsent.delete(next);
    this.#send(next);
  }

  #onAnswer(question: Question, attempt: LeaseAttempt): void {
    const times = attempt.acquired ? question.timesOf(attempt) : undefined;
    if (attempt.acquired && times && question.isInTime(attempt, times)) {
      if (!this.#remove(question)) return;
      question.unwatch?.();
      question.resolve(this.#contending.leaseOf(question, attempt, times));
    } else if (!attempt.acquired && question.isFinalRefusal(attempt)) {
      question.request.onBlocked?.(attempt.holder);
      if (this.#remove(question)) question.resolve(null);
    } else this.#contend(question);
  }

  #scheduleCheck(delayMs: number, clock: Clock): void {
    this.#timer = clock.schedule(delayMs, () => this.#check(clock), { background: true });
  }

  /** Checks how long questions have waited to be sent, or to be answered. */
  #check(clock: Clock): void {
    this.#timer = undefined;
    for (let question = this.#unsent.first; question;) {
      const { after } = question;
      this.#rejectIfNeverSent(question);
      question = after;
    }
    const overdueSince = clock.now() - SILENCE_MS;
    for (let first = this.#recent.first; first && first.askedAt <= overdueSince; first = this.#recent.first) {
      this.#recent.delete(first);
      this.#overdue.push(first);
      this.#onOverdue(first);
    }
    if (this.#unsent.first) this.#scheduleCheck(SILENCE_MS, clock);
    else if (this.#recent.first) this.#scheduleCheck(this.#recent.first.askedAt - overdueSince, clock);
  }

  #rejectIfNeverSent(question: Question): void {
    const { key, isSingleAttempt, askedAt, clock, deadline } = question;
    const waitsSince = Math.max(askedAt, this.#lastAnswerAt);
    const isLate = isSingleAttempt ? clock.now() >= waitsSince + this.#contending.patienceMs : deadline.passed;
    if (!isLate) return;
    const cause = new NotSentError('very many acquisitions of this process wait for an answer already');
    this.#reject(question, new LockBackendError(key, { backend: this.name, operation: 'acquire', cause }));
  }

  /** Has a contender take over at the deadline. Until then the question only waits: there may be very many of them. */
  #onOverdue(question: Question): void {
    const { isSingleAttempt, clock, deadline } = question;
    if (isSingleAttempt) return;
    const { passed, remainingMs } = deadline;
    if (passed) this.#contend(question);
    else question.alarm = clock.schedule(remainingMs, () => this.#contend(question), { background: true });
  }

  #callOff(question: Question, reason: unknown): void {
    if (question.answer) this.#contend(question);
    else this.#reject(question, reason);
  }

  /** Hands a question to a contender: its caller has to wait, it failed, or no answer came soon. */
  #contend(question: Question): void {
    if (this.#remove(question)) question.resolve(new Contender(this.#contending, question).run());
  }

  #reject(question: Question, error: unknown): void {
    if (this.#remove(question)) question.reject(error);
  }

  /** Returns whether the question was still one of this backend's. */
  #remove(question: Question): boolean {
    if (!question.queue) return false;
    question.queue.delete(question);
    question.alarm?.cancel();
    question.abortListener?.end();
    return true;
  }
}
