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
 * The most first questions of a process under way at a time. With all that they need, 100,000 would take 0.4 GB; those
 * that stand behind take half of that, and a server is no slower for it.
 */
const MOST_ASKED = 5_000;

/**
 * Waits for the leases of a store: lost replies, late replies and giving up, written once for all of them. It goes the
 * short way, which is a question that a lease answers soon. What needs more gets a `Contender`.
 */
export class LockBackend {
  readonly #contending: Contending;
  readonly #cleanUps: CleanUps;
  readonly #outcomes: Outcomes;
  /** Those that stand behind others, in the order of arrival. */
  readonly #unasked = new LinkedQueue<Question>();
  /** In the order in which they were asked. */
  readonly #fresh = new LinkedQueue<Question>();
  /** A store lets them wait: each until its own deadline. */
  readonly #silent = new LinkedQueue<Question>();
  #asked = 0;
  #answeredAt = -Infinity;
  /** One for all questions. */
  #timer: Timer | undefined;
  #closed = false;

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

  /** @internal Notes how a request ended that did not go through this backend, such as a reading. Settles as it does. */
  async note<T>(key: string, clock: Clock, request: Promise<T>): Promise<T> {
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
   * @internal Resolves to a lease once `key` is ours alone, or to `null` when `request.deadline` passes first; a deadline already
   * past means: try once. Unless it resolves to a lease, nothing of ours stays behind on the server: what could not be
   * taken back at once is taken back in the background.
   * @throws LockBackendError when the backend cannot answer; `request.signal.reason` when the caller gives up
   */
  acquire(key: string, request: AcquireRequest): Promise<Lease | null> {
    return new Promise<Lease | null>((resolve, reject) => {
      if (this.#closed) throw new Error(CLOSED);
      assertTtl(request.ttlMs, this.store);
      const { signal, yields = false, inherited = false } = request;
      signal?.throwIfAborted();
      const question = new Question(key, request, resolve, reject);
      if (yields) return resolve(new Contender(this.#contending, question).run());
      if (signal) question.abortListener = new AbortListener(signal, () => this.#callOff(question, signal.reason));
      // An inherited queue entry stands on the server, and would have to be cleaned up.
      if (this.#asked < MOST_ASKED || inherited) this.#ask(question);
      else this.#unasked.push(question);
      if (!this.#timer) this.#lookIn(SILENCE_MS, question.clock);
    });
  }

  /** @internal Takes a queue entry off the server in the background, for a caller who inherited it and will not ask. */
  abandon(key: string, { owner, ttlMs, deadline }: AcquireRequest): void {
    this.#cleanUps.add({ key, owner, ttlMs, clock: deadline.clock });
  }

  /** @internal Rejects all who ask, with this reason. */
  dismiss(reason: unknown): void {
    for (const queue of [this.#unasked, this.#fresh, this.#silent]) {
      for (let question = queue.first; question; question = queue.first) this.#callOff(question, reason);
    }
    for (const contender of this.#contending.contenders) contender.callOff(reason);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#outcomes.close();
    await this.#cleanUps.close();
    await this.store.close();
  }

  #ask(question: Question): void {
    this.#asked += 1;
    this.#fresh.push(question);
    question.watch(this.store);
    const onAnswer = (attempt: LeaseAttempt): void => {
      this.#outcomes.noteCarriedOut('take');
      this.#answeredAt = question.clock.now();
      this.#askNext();
      this.#onAnswer(question, attempt);
    };
    const onFailure = (error: unknown): void => {
      this.#contending.noteFailure(error, question);
      this.#askNext();
      this.#goOn(question);
    };
    question.ask(this.store).then(onAnswer, onFailure);
  }

  /** Another one is answered, or failed; a contender may wait for it by now. */
  #askNext(): void {
    this.#asked -= 1;
    const next = this.#unasked.first;
    if (!next || this.#asked >= MOST_ASKED) return;
    this.#unasked.delete(next);
    this.#ask(next);
  }

  #onAnswer(question: Question, attempt: LeaseAttempt): void {
    const times = attempt.acquired ? question.timesOf(attempt) : undefined;
    if (attempt.acquired && times && question.isInTime(attempt, times)) {
      if (!this.#end(question)) return;
      question.unwatch?.();
      question.resolve(this.#contending.leaseOf(question, attempt, times));
    } else if (!attempt.acquired && question.isPlain(attempt)) {
      question.request.blockedBy?.(attempt.holder);
      if (this.#end(question)) question.resolve(null);
    } else this.#goOn(question);
  }

  #lookIn(delayMs: number, clock: Clock): void {
    this.#timer = clock.schedule(delayMs, () => this.#look(clock), { background: true });
  }

  #look(clock: Clock): void {
    this.#timer = undefined;
    for (let question = this.#unasked.first; question;) {
      const { after } = question;
      this.#onDelay(question);
      question = after;
    }
    const silentSince = clock.now() - SILENCE_MS;
    for (let first = this.#fresh.first; first && first.askedAt <= silentSince; first = this.#fresh.first) {
      this.#fresh.delete(first);
      this.#silent.push(first);
      this.#onSilence(first);
    }
    if (this.#unasked.first) this.#lookIn(SILENCE_MS, clock);
    else if (this.#fresh.first) this.#lookIn(this.#fresh.first.askedAt - silentSince, clock);
  }

  #onDelay(question: Question): void {
    const { key, once, askedAt, clock, deadline } = question;
    const waitsSince = Math.max(askedAt, this.#answeredAt);
    const isLate = once ? clock.now() >= waitsSince + this.#contending.patienceMs : deadline.passed;
    if (!isLate) return;
    const cause = new NotSentError('very many acquisitions of this process wait for an answer already');
    this.#refuse(question, new LockBackendError(key, { backend: this.name, operation: 'acquire', cause }));
  }

  /** A contender takes over at the deadline. Until then it only waits: there may be very many of these. */
  #onSilence(question: Question): void {
    const { once, clock, deadline } = question;
    if (once) return;
    const { passed, remainingMs } = deadline;
    if (passed) this.#goOn(question);
    else question.alarm = clock.schedule(remainingMs, () => this.#goOn(question), { background: true });
  }

  #callOff(question: Question, reason: unknown): void {
    if (question.answer) this.#goOn(question);
    else this.#refuse(question, reason);
  }

  /** With a question whose caller has to wait, which failed, or which nothing answers soon. */
  #goOn(question: Question): void {
    if (this.#end(question)) question.resolve(new Contender(this.#contending, question).run());
  }

  #refuse(question: Question, error: unknown): void {
    if (this.#end(question)) question.reject(error);
  }

  #end(question: Question): boolean {
    if (!question.queue) return false;
    question.queue.delete(question);
    question.alarm?.cancel();
    question.abortListener?.end();
    return true;
  }
}
