import { AbortListener } from '../kit/abort-listener.js';
import { LockBackendError, LockError } from '../contract/errors.js';
import type { Contending } from './contending.js';
import type { LeaseAttempt, RefusedLease } from '../contract/lease-store.js';
import type { AcquireRequest } from './lease-request.js';
import type { Lease } from './lease.js';
import { replyTimeout } from '../kit/reply-timeout.js';
import { assertLockDelay } from '../lock-options.js';
import { NotSentError } from '../contract/not-sent-error.js';
import { type FirstQuestion, Question, SILENCE_MS } from './question.js';
import { leaseOf } from './session-lease.js';
import { AFTER_EXPIRY_MS } from './wake-ups.js';
import { trustedUntil } from '../holding/watchdog.js';

const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 500;

const nothing = (): void => undefined;

/** One caller's way to a lease, or to giving up, when its first question did not bring one soon. Used once. */
export class Contender {
  /** No deadline but the store's own, and no place in a queue. */
  readonly #once: boolean;
  /** A request was sent that may have been carried out, or may have put us in a queue. */
  #mayHaveLeftSomething: boolean;
  #underWay = false;
  /** A clean-up has to come after it: a release that overtakes its acquire frees nothing. */
  #lastAttempt: Promise<unknown> | undefined;
  #unwatch: (() => void) | undefined;
  #abortListener: AbortListener | undefined;
  /** Nobody wants the lease any more, for this reason. */
  #calledOff: { readonly reason: unknown } | undefined;
  #woken = false;
  #queued = false;
  #question: Question | undefined;
  /** End what we wait for: a pause, or an answer too. There is one thing at a time. */
  #wakeUp: () => void = nothing;
  #endWait: () => void = nothing;
  /** The slowest of the answers that somebody else has the key. */
  #slowestMs: number | undefined;
  /** The failures in a row, by the last of them. */
  #failing: { readonly since: number; readonly times: number; readonly error: unknown } | undefined;
  /** The obstacle of the last refusal. */
  #obstacle: Error | undefined;

  constructor(
    private readonly contending: Contending,
    private readonly key: string,
    private readonly request: AcquireRequest,
    private readonly first?: FirstQuestion,
  ) {
    this.#once = first?.once ?? request.deadline.passed;
    this.#mayHaveLeftSomething = request.queueEntry?.inherited === true;
  }

  /** See `LockBackend.acquire`. */
  async run(): Promise<Lease | null> {
    let lease: Lease | null = null;
    this.contending.contenders.add(this);
    try {
      this.#begin();
      const { first } = this;
      if (this.request.yields === true && !first && !this.#once && !this.#unwatch) await this.#letOthersAsk();
      let next = await this.#attempt(first);
      while (typeof next === 'number') next = this.#once ? null : await this.#attemptAfter(next);
      lease = next;
      return lease;
    } catch (error) {
      if (error instanceof LockError || error === this.#calledOff?.reason) throw error;
      throw new LockBackendError(this.key, { backend: this.contending.store.name, operation: 'acquire', cause: error });
    } finally {
      this.contending.contenders.delete(this);
      if (this.#question) this.#question.abandoned = true;
      this.#unwatch?.();
      this.#abortListener?.end();
      const leftSomething = !lease && this.#mayHaveLeftSomething;
      if (leftSomething && !this.#passesEntry()) this.#cleanUp();
    }
  }

  #cleanUp(): void {
    const { owner, ttlMs, deadline } = this.request;
    this.contending.cleanUp({ key: this.key, owner, ttlMs, clock: deadline.clock }, this.#lastAttempt);
  }

  #begin(): void {
    const { first } = this;
    const { owner, signal } = this.request;
    if (first) {
      this.#unwatch = first.unwatch;
      this.#woken = first.woken;
      first.onWake = this.#wake;
    } else if (!this.#once) this.#unwatch = this.contending.store.watch?.(this.key, owner, this.#wake);
    if (signal?.aborted === true) this.callOff(signal.reason);
    // Where a first question was asked, the clean-up has to come after its answer.
    if (!first) this.#assertWanted();
    if (signal?.aborted === false) this.#abortListener = new AbortListener(signal, () => this.callOff(signal.reason));
  }

  callOff(reason: unknown): void {
    this.#calledOff ??= { reason };
    this.#endWait();
  }

  /** Not while a request is under way, which the next one's release could overtake. */
  #passesEntry(): boolean {
    return this.#queued && !this.#underWay && this.request.queueEntry?.pass() === true;
  }

  #assertWanted(): void {
    if (this.#calledOff) throw this.#calledOff.reason;
  }

  /** For as long as others may pause between two questions, so that each of them asks once. */
  async #letOthersAsk(): Promise<void> {
    await this.#wait(Math.min(this.contending.pollMs * 1.5 + AFTER_EXPIRY_MS, this.request.deadline.remainingMs / 2));
    this.#assertWanted();
  }

  async #attemptAfter(delayMs: number): Promise<Lease | null | number> {
    await this.#wait(delayMs);
    this.#assertWanted();
    return this.request.deadline.passed ? this.#timedOut() : this.#attempt();
  }

  /** "Somebody has it" and "nobody answers" are different news, also when the time is up. */
  #timedOut(): null {
    if (this.#failing) throw this.#failing.error;
    if (this.#obstacle) throw this.#obstacle;
    return null;
  }

  /** A lease, or `null` when it is too late for one, or after how many milliseconds to ask again. */
  #attempt(asked?: FirstQuestion): Promise<Lease | null | number> {
    const leftBefore = this.#mayHaveLeftSomething;
    if (!asked) this.#woken = false;
    this.#mayHaveLeftSomething = true;
    this.#underWay = true;
    const question = asked ?? new Question(this.key, this.request);
    const answer = asked?.answer ?? question.ask(this.contending.store);
    this.#question = question;
    this.#lastAttempt = leftBefore ? answer.catch(nothing) : answer;
    return this.#inTime(answer, question.askedAt).then(
      (attempt) => attempt && this.#onAnswer(attempt, question),
      (error: unknown) => {
        if (error instanceof NotSentError) this.#mayHaveLeftSomething = leftBefore;
        return this.#onFailure(error);
      },
    );
  }

  #onAnswer(answer: LeaseAttempt, question: Question): Lease | number {
    if (!answer.acquired) return this.#onRefusal(answer, question.sentAt);
    const { lockDelayMs = 0, deadline } = this.request;
    const { ttlMs = this.request.ttlMs, sentAt = question.sentAt, revoked } = answer;
    assertLockDelay(lockDelayMs, ttlMs, this.contending.store);
    if (revoked?.aborted !== true && deadline.clock.now() < trustedUntil(sentAt, ttlMs - lockDelayMs))
      return leaseOf(this.contending, question, answer, this.#queued);
    return this.#onFailure(new Error('the answer came after the lease had ended'));
  }

  #onRefusal({ retryAfterMs, holder, obstacle, staysInLine = false }: RefusedLease, sentAt: number): number {
    this.#slowestMs = Math.max(this.#slowestMs ?? 0, this.request.deadline.clock.now() - sentAt);
    this.#failing = undefined;
    this.#obstacle = obstacle;
    this.#underWay = false;
    this.#queued = this.#unwatch !== undefined;
    this.#mayHaveLeftSomething = this.#queued || staysInLine || this.request.queueEntry?.inherited === true;
    this.request.blockedBy?.(obstacle ?? holder);
    const { pollMs, random } = this.contending;
    const poll = pollMs / 2 + random() * pollMs;
    return retryAfterMs === null ? poll : Math.min(poll, retryAfterMs + AFTER_EXPIRY_MS);
  }

  /** Rethrows what trying again will not mend in time. */
  #onFailure(error: unknown): number {
    const { clock, passed } = this.request.deadline;
    const now = clock.now();
    const { since, times } = this.#failing ?? { since: now, times: 0 };
    this.#failing = { since, times: times + 1, error };
    this.request.blockedBy?.(error instanceof Error ? error : new Error(String(error)));
    const patienceIsOver = now - since >= this.contending.patienceMs;
    if (passed || patienceIsOver || error instanceof LockError || this.#calledOff) throw error;
    return Math.min(FIRST_RETRY_MS * 2 ** times, LONGEST_RETRY_MS) + this.contending.random() * FIRST_RETRY_MS;
  }

  /** Not beyond the deadline. */
  async #wait(delayMs: number): Promise<void> {
    const { deadline } = this.request;
    if (this.#woken || this.#calledOff) return;
    await new Promise<void>((resolve) => {
      const timer = deadline.clock.schedule(Math.min(delayMs, deadline.remainingMs), resolve);
      this.#wakeUp = () => {
        timer.cancel();
        resolve();
      };
      this.#endWait = this.#wakeUp;
    });
  }

  readonly #wake = (): void => {
    this.#woken = true;
    this.#wakeUp();
  };

  /**
   * Rejects when the caller gives up, or at the deadline. That may fall into the question, which is open for
   * `SILENCE_MS` at least. `null`: at the deadline the answer was merely on its way, and all before it were refusals.
   */
  #inTime<T>(answer: Promise<T>, askedAt: number): Promise<T | null> {
    const { clock, at } = this.request.deadline;
    return new Promise((resolve, reject) => {
      const onSilence = (): void => {
        if (this.#isMerelySlow(clock.now() - askedAt)) resolve(null);
        else reject(new Error('no answer before the deadline'));
      };
      const silentMs = Math.max(at, askedAt + SILENCE_MS) - clock.now();
      const alarm = this.#once ? undefined : replyTimeout(clock, silentMs, onSilence, { background: true });
      this.#endWait = () => {
        alarm?.cancel();
        reject(this.#calledOff?.reason);
      };
      if (this.#calledOff) return this.#endWait();
      const onAnswer = (value: T): void => {
        alarm?.cancel();
        resolve(value);
      };
      const onFailure = (error: unknown): void => {
        alarm?.cancel();
        reject(error);
      };
      answer.then(onAnswer, onFailure);
    });
  }

  /** Compared with the answers that came, which were all that somebody else has the key. */
  #isMerelySlow(silentMs: number): boolean {
    return (
      !this.#failing && !this.#obstacle && this.#slowestMs !== undefined && silentMs <= SILENCE_MS + 2 * this.#slowestMs
    );
  }
}
