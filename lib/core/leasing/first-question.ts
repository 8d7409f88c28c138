import { AbortListener } from '../kit/abort-listener.js';
import { Contender } from './contender.js';
import type { Contending } from './contending.js';
import type { GrantedLease, LeaseAttempt, RefusedLease } from '../contract/lease-store.js';
import { type Linked, LinkedQueue } from '../kit/linked-queue.js';
import type { AcquireRequest } from './lease-request.js';
import type { Lease } from './lease.js';
import { type OpenQuestion, Question, SILENCE_MS } from './question.js';
import { leaseOf } from './session-lease.js';
import type { Clock, Timer } from '../time/timers.js';
import { trustedUntil } from '../holding/watchdog.js';

/**
 * The short way: a question that is answered soon, by a lease, needs no more than this. Whoever has to wait, or fails, or is not
 * answered soon, goes on as a `Contender`.
 */
export class FirstQuestion implements OpenQuestion, Linked<FirstQuestion> {
  /** @internal */
  before: FirstQuestion | undefined;
  /** @internal */
  after: FirstQuestion | undefined;
  /** @internal */
  queue: object | undefined;
  readonly question: Question;
  readonly unwatch: (() => void) | undefined;
  readonly once: boolean;
  woken = false;
  /** Goes on when somebody has to wait. */
  onWake: (() => void) | undefined;
  readonly #abortListener: AbortListener | undefined;
  #alarm: Timer | undefined;

  constructor(
    private readonly contending: Contending,
    private readonly key: string,
    private readonly request: AcquireRequest,
    private readonly resolve: (lease: Lease | null | Promise<Lease | null>) => void,
    private readonly open: FirstQuestions,
  ) {
    const { store } = contending;
    const { owner, deadline, signal } = request;
    this.once = deadline.passed;
    if (!this.once) this.unwatch = store.watch?.(key, owner, () => this.#wake());
    this.question = new Question(store, key, request);
    if (signal) this.#abortListener = new AbortListener(signal, () => this.goOn());
  }

  begin(): void {
    this.open.add(this, this.request.deadline.clock);
    this.question.answer.then(
      (attempt) => this.#onAnswer(attempt),
      () => this.goOn(),
    );
  }

  /** A contender takes over, unless there is one already. */
  goOn(): void {
    if (!this.#end()) return;
    this.resolve(new Contender(this.contending, this.key, this.request, this).run());
  }

  /** A contender takes over at the deadline. Until then nothing is to be done but to wait: there may be very many of these. */
  onSilence(): void {
    if (this.once) return;
    const { clock, passed, remainingMs } = this.request.deadline;
    if (passed) this.goOn();
    else this.#alarm = clock.schedule(remainingMs, () => this.goOn(), { background: true });
  }

  #onAnswer(attempt: LeaseAttempt): void {
    if (attempt.acquired && this.#isInTime(attempt)) {
      if (this.#end()) this.resolve(this.#leaseOf(attempt));
    } else if (!attempt.acquired && this.#isPlain(attempt)) {
      this.request.blockedBy?.(attempt.holder);
      if (this.#end()) this.resolve(null);
    } else this.goOn();
  }

  /** Nothing of a caller who does not wait is left on the server, and nothing more is to be said. */
  #isPlain({ obstacle, staysInLine }: RefusedLease): boolean {
    return this.once && !obstacle && staysInLine !== true && this.request.place?.inherited !== true;
  }

  #isInTime({ ttlMs = this.request.ttlMs, sentAt = this.question.sentAt, revoked }: GrantedLease): boolean {
    const { lockDelayMs = 0, deadline } = this.request;
    return revoked?.aborted !== true && deadline.clock.now() < trustedUntil(sentAt, ttlMs - lockDelayMs);
  }

  #leaseOf(granted: GrantedLease): Lease {
    this.unwatch?.();
    const { owner, ttlMs, deadline } = this.request;
    const owned = { key: this.key, owner, ttlMs, clock: deadline.clock };
    return leaseOf(this.contending, owned, { granted, queued: false, sentAt: this.question.sentAt });
  }

  #wake(): void {
    this.woken = true;
    this.onWake?.();
  }

  #end(): boolean {
    if (!this.open.delete(this)) return false;
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

  add(first: FirstQuestion, clock: Clock): void {
    this.#fresh.push(first);
    if (!this.#timer) this.#lookIn(SILENCE_MS, clock);
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
      const { askedAt } = first.question;
      if (askedAt > silentSince) {
        return this.#lookIn(askedAt - silentSince, clock);
      }
      this.#fresh.delete(first);
      this.#silent.push(first);
      first.onSilence();
    }
  }
}
