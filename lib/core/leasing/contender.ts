import { AbortListener } from '../time/abort-listener.js';
import { isLockError, LockBackendError, NotSentError } from '../contract/errors.js';
import { failureKindOf } from '../contract/failure-kind.js';
import type { Contending } from './contending.js';
import type { LeaseAttempt, RefusedLease } from '../contract/lease-store.js';
import type { Lease } from './lease.js';
import { replyTimeout } from '../time/reply-timeout.js';
import { assertLockDelay } from '../options/option-resolver.js';
import type { Question } from './question.js';
import { AFTER_EXPIRY_MS } from './wake-ups.js';

/** Time within which a store that works answers. */
export const SILENCE_MS = 100;
const FIRST_RETRY_MS = 20;
const MAX_RETRY_MS = 500;

const doNothing = (): void => undefined;

/** Asks again for a caller whose first question brought no lease soon, until there is one or the caller gives up. Used once. */
export class Contender {
  /** Whether a request was sent that may have been carried out, or may have put the owner into a queue. */
  #mayHaveLeftSomething: boolean;
  #isUnderWay = false;
  /** Request that a clean-up has to come after: a release that overtakes its acquire frees nothing. */
  #lastAttempt: Promise<unknown> | undefined;
  #abortListener: AbortListener | undefined;
  /** Reason why the caller no longer wants the lease: its abort, or the end of the service. */
  #calledOff: { readonly reason: unknown } | undefined;
  #isQueued = false;
  /** Ends the pause that this waits for, if it waits for one. */
  #wakeUp: () => void = doNothing;
  /** Ends the pause, or the wait for an answer. */
  #endWait: () => void = doNothing;
  /** Time that the slowest refusal took. */
  #slowestMs: number | undefined;
  /** Failures since the last answer, with the latest error. */
  #failing: { readonly since: number; readonly times: number; readonly error: unknown } | undefined;
  #obstacle: Error | undefined;

  constructor(
    private readonly contending: Contending,
    private readonly question: Question,
  ) {
    this.#mayHaveLeftSomething = question.request.inherited === true;
  }

  async run(): Promise<Lease | null> {
    const { contending, question } = this;
    const { key, isSingleAttempt, answer, request } = question;
    let lease: Lease | null = null;
    contending.contenders.add(this);
    try {
      this.#begin();
      if (request.yields === true && !isSingleAttempt && !question.unwatch) await this.#letOthersAsk();
      let next = await this.#attempt(answer);
      while (typeof next === 'number') next = isSingleAttempt ? null : await this.#attemptAfter(next);
      lease = next;
      return lease;
    } catch (error) {
      if (isLockError(error) || error === this.#calledOff?.reason) throw error;
      throw new LockBackendError(key, { backend: contending.store.name, operation: 'acquire', cause: error });
    } finally {
      contending.contenders.delete(this);
      question.abandoned = true;
      question.unwatch?.();
      this.#abortListener?.end();
      const leftSomething = !lease && this.#mayHaveLeftSomething;
      if (leftSomething && !this.#passesEntry()) this.#cleanUp();
    }
  }

  #cleanUp(): void {
    const { key, owner, ttlMs, clock } = this.question;
    this.contending.cleanUp({ key, owner, ttlMs, clock }, this.#lastAttempt);
  }

  #begin(): void {
    const { question } = this;
    const { signal } = question.request;
    question.onWake = () => this.#wakeUp();
    if (signal?.aborted === true) this.callOff(signal.reason);
    // A question that was asked already may need a clean-up, which has to come after its answer.
    if (!question.answer) {
      this.#assertWanted();
      question.watch(this.contending.store);
    }
    if (signal?.aborted === false) this.#abortListener = new AbortListener(signal, () => this.callOff(signal.reason));
  }

  callOff(reason: unknown): void {
    this.#calledOff ??= { reason };
    this.#endWait();
  }

  /** Passes the queue entry to the next caller, unless a request is under way that a release could overtake. */
  #passesEntry(): boolean {
    return this.#isQueued && !this.#isUnderWay && this.question.request.passQueueEntry?.() === true;
  }

  #assertWanted(): void {
    if (this.#calledOff) throw this.#calledOff.reason;
  }

  /** Waits as long as other processes may pause between two questions, so that each of them asks once. */
  async #letOthersAsk(): Promise<void> {
    await this.#wait(Math.min(this.contending.pollMs * 1.5 + AFTER_EXPIRY_MS, this.question.deadline.remainingMs / 2));
    this.#assertWanted();
  }

  async #attemptAfter(delayMs: number): Promise<Lease | null | number> {
    await this.#wait(delayMs);
    this.#assertWanted();
    return this.question.deadline.passed ? this.#timedOut() : this.#attempt();
  }

  /** Ends the wait: a held key is `null`, while a server that fails, or an obstacle, is an error. */
  #timedOut(): null {
    if (this.#failing) throw this.#failing.error;
    if (this.#obstacle) throw this.#obstacle;
    return null;
  }

  /** Resolves to a lease, to `null` when it is too late for one, or to the milliseconds after which to ask again. */
  #attempt(asked?: Promise<LeaseAttempt>): Promise<Lease | null | number> {
    const { question } = this;
    const leftBefore = this.#mayHaveLeftSomething;
    if (!asked) question.woken = false;
    this.#mayHaveLeftSomething = true;
    this.#isUnderWay = true;
    const answer = asked ?? this.#ask();
    this.#lastAttempt = leftBefore ? answer.catch(doNothing) : answer;
    return this.#inTime(answer).then(
      (attempt) => attempt && this.#onAnswer(attempt),
      (error: unknown) => {
        if (error instanceof NotSentError) this.#mayHaveLeftSomething = leftBefore;
        return this.#onFailure(error);
      },
    );
  }

  #ask(): Promise<LeaseAttempt> {
    const { contending, question } = this;
    const answer = question.ask(contending.store);
    answer.then(
      () => contending.outcomes.noteCarriedOut('take'),
      (error: unknown) => contending.noteFailure(error, question),
    );
    return answer;
  }

  #onAnswer(answer: LeaseAttempt): Lease | number {
    const { contending, question } = this;
    if (!answer.acquired) return this.#onRefusal(answer);
    const times = question.timesOf(answer);
    assertLockDelay(question.request.lockDelayMs ?? 0, times.keptMs, contending.store);
    if (question.isInTime(answer, times)) return contending.leaseOf(question, answer, times, this.#isQueued);
    return this.#onFailure(new Error('the answer came after the lease had ended'));
  }

  #onRefusal({ retryAfterMs, holder, obstacle, staysInLine = false }: RefusedLease): number {
    const { clock, request, sentAt, unwatch } = this.question;
    this.#slowestMs = Math.max(this.#slowestMs ?? 0, clock.now() - sentAt);
    this.#failing = undefined;
    this.#obstacle = obstacle;
    this.#isUnderWay = false;
    this.#isQueued = unwatch !== undefined;
    this.#mayHaveLeftSomething = this.#isQueued || staysInLine || request.inherited === true;
    request.onBlocked?.(obstacle ?? holder);
    const { pollMs, random } = this.contending;
    const poll = pollMs / 2 + random() * pollMs;
    return retryAfterMs === null ? poll : Math.min(poll, retryAfterMs + AFTER_EXPIRY_MS);
  }

  /** Returns the milliseconds until the next attempt. Rethrows an error that no further attempt would mend in time. */
  #onFailure(error: unknown): number {
    const { clock, deadline, request } = this.question;
    const now = clock.now();
    const { since, times } = this.#failing ?? { since: now, times: 0 };
    this.#failing = { since, times: times + 1, error };
    request.onBlocked?.(error instanceof Error ? error : new Error(String(error)));
    const patienceIsOver = now - since >= this.contending.patienceMs;
    const isFinal = isLockError(error) || failureKindOf(error) === 'value';
    if (deadline.passed || patienceIsOver || isFinal || this.#calledOff) throw error;
    return Math.min(FIRST_RETRY_MS * 2 ** times, MAX_RETRY_MS) + this.contending.random() * FIRST_RETRY_MS;
  }

  async #wait(delayMs: number): Promise<void> {
    const { clock, deadline, woken } = this.question;
    if (woken || this.#calledOff) return;
    await new Promise<void>((resolve) => {
      const timer = clock.schedule(Math.min(delayMs, deadline.remainingMs), resolve);
      this.#wakeUp = () => {
        timer.cancel();
        resolve();
      };
      this.#endWait = this.#wakeUp;
    });
  }

  /**
   * Waits for an answer until the caller gives up, or until the deadline, and at least for `SILENCE_MS`. `null`: at the
   * deadline the answer was merely slow, and all answers before it were refusals.
   */
  #inTime<T>(answer: Promise<T>): Promise<T | null> {
    const { askedAt, clock, deadline, isSingleAttempt } = this.question;
    return new Promise((resolve, reject) => {
      const onSilence = (): void => {
        if (this.#isMerelySlow(clock.now() - askedAt)) resolve(null);
        else reject(new Error('no answer before the deadline'));
      };
      const silentMs = Math.max(deadline.at, askedAt + SILENCE_MS) - clock.now();
      const alarm = isSingleAttempt ? undefined : replyTimeout(clock, silentMs, onSilence, { background: true });
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

  /** Returns whether an answer is no later than the refusals before it let expect. */
  #isMerelySlow(silentMs: number): boolean {
    return (
      !this.#failing && !this.#obstacle && this.#slowestMs !== undefined && silentMs <= SILENCE_MS + 2 * this.#slowestMs
    );
  }
}
