import { AbortListener } from '../kit/abort-listener.js';
import type { Deadline } from '../time/deadline.js';
import type { Asker, GrantedLease, LeaseAttempt, LeaseStore, RefusedLease } from '../contract/lease-store.js';
import { type Linked, LinkedQueue } from '../kit/linked-queue.js';
import type { AcquireRequest } from './lease-request.js';
import type { Lease } from './lease.js';
import type { OwnedKey } from './store-lease.js';
import type { Clock, Timer } from '../time/timers.js';
import { trustedUntil } from '../holding/watchdog.js';

/** A store that answers does so within this time. */
export const SILENCE_MS = 100;

/** One question to a store. */
export class Question implements Asker, OwnedKey {
  readonly askedAt: number;
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

/** All questions of a backend share this. */
export interface FirstQuestionContext {
  readonly store: LeaseStore;
  readonly unanswered: FirstQuestions;
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
  readonly unwatch: (() => void) | undefined;
  readonly answer: Promise<LeaseAttempt>;
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
  ) {
    super(key, request);
    const { store } = context;
    const { owner, deadline, signal } = request;
    this.once = deadline.passed;
    if (!this.once) this.unwatch = store.watch?.(key, owner, () => this.#wake());
    this.answer = this.ask(store);
    if (signal) this.#abortListener = new AbortListener(signal, () => this.goOn());
  }

  begin(): void {
    this.context.unanswered.add(this);
    this.answer.then(
      (attempt) => this.#onAnswer(attempt),
      () => this.goOn(),
    );
  }

  /** A contender takes over, unless there is one already. */
  goOn(): void {
    if (this.#end()) this.resolve(this.context.contend(this));
  }

  /** A contender takes over at the deadline. Until then nothing is done but to wait: there may be very many of these. */
  onSilence(): void {
    if (this.once) return;
    const { passed, remainingMs } = this.deadline;
    if (passed) this.goOn();
    else this.#alarm = this.clock.schedule(remainingMs, () => this.goOn(), { background: true });
  }

  #onAnswer(attempt: LeaseAttempt): void {
    if (attempt.acquired && this.#isInTime(attempt)) {
      if (!this.#end()) return;
      this.unwatch?.();
      this.resolve(this.context.leaseOf(this, attempt));
    } else if (!attempt.acquired && this.#isPlain(attempt)) {
      this.request.blockedBy?.(attempt.holder);
      if (this.#end()) this.resolve(null);
    } else this.goOn();
  }

  /** Nothing of a caller who does not wait is left on the server, and nothing more is to be said. */
  #isPlain({ obstacle, staysInLine }: RefusedLease): boolean {
    return this.once && !obstacle && staysInLine !== true && this.request.place?.inherited !== true;
  }

  #isInTime({ ttlMs = this.request.ttlMs, sentAt = this.sentAt, revoked }: GrantedLease): boolean {
    const { lockDelayMs = 0 } = this.request;
    return revoked?.aborted !== true && this.clock.now() < trustedUntil(sentAt, ttlMs - lockDelayMs);
  }

  #wake(): void {
    this.woken = true;
    this.onWake?.();
  }

  #end(): boolean {
    if (!this.context.unanswered.delete(this)) return false;
    this.#alarm?.cancel();
    this.#abortListener?.end();
    return true;
  }
}

/** Those that are not answered yet. One timer looks after all that were asked lately. */
export class FirstQuestions {
  /** In the order in which they were asked. */
  readonly #fresh = new LinkedQueue<FirstQuestion>();
  /** A store lets them wait: each until its own deadline. */
  readonly #silent = new LinkedQueue<FirstQuestion>();
  #timer: Timer | undefined;

  get first(): FirstQuestion | undefined {
    return this.#fresh.first ?? this.#silent.first;
  }

  add(first: FirstQuestion): void {
    this.#fresh.push(first);
    if (!this.#timer) this.#lookIn(SILENCE_MS, first.clock);
  }

  /** Whether it was here. */
  delete(first: FirstQuestion): boolean {
    if (first.queue === undefined) return false;
    this.#fresh.delete(first);
    this.#silent.delete(first);
    return true;
  }

  #lookIn(delayMs: number, clock: Clock): void {
    this.#timer = clock.schedule(delayMs, () => this.#look(clock), { background: true });
  }

  #look(clock: Clock): void {
    this.#timer = undefined;
    const silentSince = clock.now() - SILENCE_MS;
    for (let first = this.#fresh.first; first; first = this.#fresh.first) {
      if (first.askedAt > silentSince) return this.#lookIn(first.askedAt - silentSince, clock);
      this.#fresh.delete(first);
      this.#silent.push(first);
      first.onSilence();
    }
  }
}
