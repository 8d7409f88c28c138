import { AbortListener } from '../kit/abort-listener.js';
import type { Deadline } from '../time/deadline.js';
import type { Asker, GrantedLease, LeaseAttempt, LeaseStore, RefusedLease } from '../contract/lease-store.js';
import { type Linked, LinkedQueue } from '../kit/linked-queue.js';
import { LockBackendError } from '../contract/errors.js';
import { NotSentError } from '../contract/not-sent-error.js';
import type { AcquireRequest } from './lease-request.js';
import type { Lease } from './lease.js';
import type { OwnedKey } from './store-lease.js';
import type { Clock, Timer } from '../time/timers.js';
import { trustedUntil } from '../holding/watchdog.js';

/** A store that answers does so within this time. */
export const SILENCE_MS = 100;
/**
 * The most first questions of a process under way at a time. With all that they need, 100,000 would take 0.4 GB; those
 * that stand behind take half of that, and a server is no slower for it.
 */
const MOST_ASKED = 5_000;

/** One question to a store. */
export class Question implements Asker, OwnedKey {
  askedAt: number;
  /** The lease counts from here. */
  sentAt: number;
  /** Nobody waits for the answer any more. */
  abandoned = false;

  constructor(
    readonly key: string,
    readonly request: AcquireRequest,
  ) {
    this.askedAt = this.clock.now();
    this.sentAt = this.askedAt;
  }

  get owner(): string {
    return this.request.owner;
  }

  get ttlMs(): number {
    return this.request.ttlMs;
  }

  get deadline(): Deadline {
    return this.request.deadline;
  }

  get clock(): Clock {
    return this.request.deadline.clock;
  }

  ask(store: LeaseStore): Promise<LeaseAttempt> {
    const { owner, ttlMs, metadata } = this.request;
    return store.tryAcquire(this.key, owner, ttlMs, metadata, this);
  }

  onSend(): boolean {
    this.sentAt = this.clock.now();
    return !this.abandoned;
  }
}

/** All first questions of a backend share this. */
export interface FirstQuestionContext {
  readonly store: LeaseStore;
  readonly questions: FirstQuestions;
  /** How long whoever does not wait may stand behind others before it is asked. */
  readonly patienceMs: number;
  leaseOf(question: FirstQuestion, granted: GrantedLease): Lease;
  /** Goes on with a question whose caller has to wait, which failed, or which nothing answers soon. */
  contend(question: FirstQuestion): Promise<Lease | null>;
}

/** The short way: a question that a lease answers soon needs no more than this. */
export class FirstQuestion extends Question implements Linked<FirstQuestion> {
  /** @internal */
  before: FirstQuestion | undefined;
  /** @internal */
  after: FirstQuestion | undefined;
  /** @internal */
  queue: object | undefined;
  /** `undefined` while it stands behind others. */
  answer: Promise<LeaseAttempt> | undefined;
  unwatch: (() => void) | undefined;
  /** The caller does not wait. */
  readonly once: boolean;
  woken = false;
  /** The contender's, once there is one. */
  onWake: (() => void) | undefined;
  readonly #abortListener: AbortListener | undefined;
  #alarm: Timer | undefined;

  constructor(
    key: string,
    request: AcquireRequest,
    private readonly context: FirstQuestionContext,
    private readonly resolve: (lease: Lease | null | Promise<Lease | null>) => void,
    private readonly reject: (error: unknown) => void,
  ) {
    super(key, request);
    const { deadline, signal } = request;
    this.once = deadline.passed;
    if (signal) this.#abortListener = new AbortListener(signal, () => this.callOff(signal.reason));
  }

  /** Asks the store. */
  begin(): void {
    const { store, questions } = this.context;
    if (!this.once) this.unwatch = store.watch?.(this.key, this.owner, () => this.#wake());
    this.askedAt = this.sentAt = this.clock.now();
    this.answer = this.ask(store);
    const onAnswer = (attempt: LeaseAttempt): void => {
      questions.onAnswer();
      this.#onAnswer(attempt);
    };
    const onFailure = (): void => {
      questions.onAnswer();
      this.#goOn();
    };
    this.answer.then(onAnswer, onFailure);
  }

  callOff(reason: unknown): void {
    if (this.answer) this.#goOn();
    else this.#refuse(reason);
  }

  /**
   * A contender takes over at the deadline. Until then nothing is done but to wait: there may be very many of these.
   */
  onSilence(): void {
    if (this.once) return;
    const { passed, remainingMs } = this.deadline;
    if (passed) this.#goOn();
    else this.#alarm = this.clock.schedule(remainingMs, () => this.#goOn(), { background: true });
  }

  /** Stands behind others still. */
  onDelay(): void {
    const { deadline, clock, once, context } = this;
    const isLate = once ? clock.now() >= this.askedAt + context.patienceMs : deadline.passed;
    if (!isLate) return;
    const { name } = context.store;
    const cause = new NotSentError(`${MOST_ASKED} acquisitions of this process wait for an answer already`);
    this.#refuse(new LockBackendError(this.key, { backend: name, operation: 'acquire', cause }));
  }

  #goOn(): void {
    if (this.#end()) this.resolve(this.context.contend(this));
  }

  #refuse(error: unknown): void {
    if (this.#end()) this.reject(error);
  }

  #onAnswer(attempt: LeaseAttempt): void {
    if (attempt.acquired && this.#isInTime(attempt)) {
      if (!this.#end()) return;
      this.unwatch?.();
      this.resolve(this.context.leaseOf(this, attempt));
    } else if (!attempt.acquired && this.#isPlain(attempt)) {
      this.request.blockedBy?.(attempt.holder);
      if (this.#end()) this.resolve(null);
    } else this.#goOn();
  }

  /** Nothing of a caller who does not wait is left on the server, and nothing more is to be said. */
  #isPlain({ obstacle, staysInLine }: RefusedLease): boolean {
    return this.once && !obstacle && staysInLine !== true && this.request.queueEntry?.inherited !== true;
  }

  #isInTime({ ttlMs = this.ttlMs, sentAt = this.sentAt, revoked }: GrantedLease): boolean {
    const { lockDelayMs = 0 } = this.request;
    return revoked?.aborted !== true && this.clock.now() < trustedUntil(sentAt, ttlMs - lockDelayMs);
  }

  #wake(): void {
    this.woken = true;
    this.onWake?.();
  }

  #end(): boolean {
    if (!this.context.questions.delete(this)) return false;
    this.#alarm?.cancel();
    this.#abortListener?.end();
    return true;
  }
}

/** Those that are not answered yet: a bounded number are asked, the others stand behind. One timer looks after all. */
export class FirstQuestions {
  /** In the order of arrival. */
  readonly #unasked = new LinkedQueue<FirstQuestion>();
  /** In the order in which they were asked. */
  readonly #fresh = new LinkedQueue<FirstQuestion>();
  /** A store lets them wait: each until its own deadline. */
  readonly #silent = new LinkedQueue<FirstQuestion>();
  #asked = 0;
  #timer: Timer | undefined;

  add(first: FirstQuestion): void {
    // An inherited queue entry stands on the server, and would have to be cleaned up.
    if (this.#asked < MOST_ASKED || first.request.queueEntry?.inherited === true) this.#begin(first);
    else this.#unasked.push(first);
    if (!this.#timer) this.#lookIn(SILENCE_MS, first.clock);
  }

  /** Whether it was here. */
  delete(first: FirstQuestion): boolean {
    if (first.queue === undefined) return false;
    for (const queue of [this.#unasked, this.#fresh, this.#silent]) queue.delete(first);
    return true;
  }

  callOff(reason: unknown): void {
    for (const queue of [this.#unasked, this.#fresh, this.#silent]) {
      for (let first = queue.first; first; first = queue.first) first.callOff(reason);
    }
  }

  /** An asked one is answered, or failed; a contender may wait for it by now. */
  onAnswer(): void {
    this.#asked -= 1;
    const next = this.#unasked.first;
    if (!next || this.#asked >= MOST_ASKED) return;
    this.#unasked.delete(next);
    this.#begin(next);
  }

  #begin(first: FirstQuestion): void {
    this.#asked += 1;
    this.#fresh.push(first);
    first.begin();
  }

  #lookIn(delayMs: number, clock: Clock): void {
    this.#timer = clock.schedule(delayMs, () => this.#look(clock), { background: true });
  }

  #look(clock: Clock): void {
    this.#timer = undefined;
    for (let first = this.#unasked.first; first;) {
      const { after } = first;
      first.onDelay();
      first = after;
    }
    const silentSince = clock.now() - SILENCE_MS;
    for (let first = this.#fresh.first; first && first.askedAt <= silentSince; first = this.#fresh.first) {
      this.#fresh.delete(first);
      this.#silent.push(first);
      first.onSilence();
    }
    if (this.#unasked.first) this.#lookIn(SILENCE_MS, clock);
    else if (this.#fresh.first) this.#lookIn(this.#fresh.first.askedAt - silentSince, clock);
  }
}
