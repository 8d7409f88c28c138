import { AbortListener } from '../kit/abort-listener.js';
import type { Deadline } from '../time/deadline.js';
import type { Asker, GrantedLease, LeaseAttempt, LeaseStore, RefusedLease } from '../contract/lease-store.js';
import type { Linked } from '../kit/linked-queue.js';
import { LockBackendError } from '../contract/errors.js';
import { NotSentError } from '../contract/not-sent-error.js';
import type { AcquireRequest } from './lease-request.js';
import type { Lease } from './lease.js';
import type { OwnedKey } from './store-lease.js';
import type { Clock, Timer } from '../time/timers.js';
import { trustedUntil } from '../holding/watchdog.js';

/** A store that answers does so within this time. */
export const SILENCE_MS = 100;

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
    try {
      return store.tryAcquire(this.key, owner, ttlMs, metadata, this);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  onSend(): boolean {
    this.sentAt = this.clock.now();
    return !this.abandoned;
  }
}

/** All first questions of a backend share this. */
export interface FirstQuestionContext {
  readonly store: LeaseStore;
  readonly questions: { delete(question: FirstQuestion): boolean; onAnswer(): void };
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
    const cause = new NotSentError('very many acquisitions of this process wait for an answer already');
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
