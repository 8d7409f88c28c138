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
    if (this.queue !== this.open) return false;
    this.open.delete(this);
    this.#abortListener?.end();
    return true;
  }
}

/** Those that are not answered yet, in the order in which they were asked. One timer looks after all of them. */
export class FirstQuestions extends LinkedQueue<FirstQuestion> {
  #timer: Timer | undefined;

  add(first: FirstQuestion, clock: Clock): void {
    this.push(first);
    if (!this.#timer) this.#lookIn(SILENCE_MS, clock);
  }

  #lookIn(delayMs: number, clock: Clock): void {
    this.#timer = clock.schedule(delayMs, () => this.#look(clock), { background: true });
  }

  #look(clock: Clock): void {
    this.#timer = undefined;
    const silentSince = clock.now() - SILENCE_MS;
    for (let first = this.first; first; first = this.first) {
      const { askedAt } = first.question;
      if (askedAt > silentSince) {
        return this.#lookIn(askedAt - silentSince, clock);
      }
      first.goOn();
    }
  }
}
