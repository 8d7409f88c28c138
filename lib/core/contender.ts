import { AbortListener } from './abort-listener.js';
import { Alarm } from './alarm.js';
import type { Deadline } from './deadline.js';
import { LockBackendError, LockError } from './errors.js';
import type { Asker, LeaseAttempt, LeaseStore, RefusedLease } from './lease-store.js';
import type { AcquireRequest, Lease } from './lock-backend.js';
import { assertLockDelay, assertTtl } from './lock-options.js';
import { NotSentError } from './not-sent-error.js';
import type { PollingOptions } from './polling-backend.js';
import { hasSessions, SessionLease } from './session-lease.js';
import { type CleanUp, type NewLease, StoreLease } from './store-lease.js';
import { AFTER_EXPIRY_MS } from './wake-ups.js';
import { trustedUntil } from './watchdog.js';

const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 500;

/** A store that answers does so within this time. */
const SILENCE_MS = 100;

const nothing = (): void => undefined;

/** One caller's way from asking a store to a lease, or to giving up. Used once. */
export class Contender implements Asker {
  /** No deadline but the store's own, and no place in a queue. */
  readonly #once: boolean;
  /** A request was sent that may have been carried out, or may have put us in a queue. */
  #mayHaveLeftSomething: boolean;
  #underWay = false;
  /** A clean-up has to come after it: a release that overtakes its acquire frees nothing. */
  #lastAttempt: Promise<unknown> | undefined;
  #unwatch: (() => void) | undefined;
  #abortListener: AbortListener | undefined;
  #woken = false;
  #queued = false;
  #over = false;
  #sentAt = NaN;
  /** End what we wait for: a pause, or an answer too. There is one thing at a time. */
  #wakeUp: () => void = nothing;
  #callOff: () => void = nothing;
  /** The slowest of the answers that somebody else has the key. */
  #slowestMs: number | undefined;
  /** The failures in a row, by the last of them. */
  #failing: { readonly since: number; readonly times: number; readonly error: unknown } | undefined;
  /** Of the last refusal. */
  #obstacle: Error | undefined;

  constructor(
    private readonly store: LeaseStore,
    private readonly key: string,
    private readonly request: AcquireRequest,
    private readonly patience: Required<PollingOptions>,
    private readonly cleanUp: CleanUp,
  ) {
    this.#once = request.deadline.passed;
    this.#mayHaveLeftSomething = request.place?.inherited === true;
  }

  /** See `LockBackend.acquire`. */
  async run(): Promise<Lease | null> {
    const { owner, ttlMs, deadline } = this.request;
    const owned = { key: this.key, owner, ttlMs, clock: deadline.clock };
    let lease: NewLease | null = null;
    try {
      this.#begin();
      if (this.request.yields === true && !this.#once && !this.#unwatch) await this.#letOthersAsk();
      let next = await this.#attempt();
      while (typeof next === 'number') next = this.#once ? null : await this.#attemptAfter(next);
      lease = next;
      const Kind = hasSessions(this.store) ? SessionLease : StoreLease;
      return lease && new Kind(this.store, owned, lease, this.cleanUp);
    } catch (error) {
      if (error instanceof LockError || this.#isCalledOff(error)) throw error;
      throw new LockBackendError(this.key, { backend: this.store.name, operation: 'acquire', cause: error });
    } finally {
      this.#over = true;
      this.#unwatch?.();
      this.#abortListener?.end();
      const leftSomething = !lease && this.#mayHaveLeftSomething;
      if (leftSomething && !this.#passesPlace()) this.cleanUp(owned, this.#lastAttempt);
    }
  }

  /** @internal See `Asker`. */
  get deadline(): Deadline {
    return this.request.deadline;
  }

  /** @internal See `Asker`. */
  onSend(): boolean {
    this.#sentAt = this.request.deadline.clock.now();
    return !this.#over;
  }

  #begin(): void {
    const { ttlMs, owner, signal } = this.request;
    assertTtl(ttlMs, this.store);
    signal?.throwIfAborted();
    if (signal) this.#abortListener = new AbortListener(signal, () => this.#callOff());
    if (!this.#once) this.#unwatch = this.store.watch?.(this.key, owner, this.#wake);
  }

  /** Not while a request is under way, which the next one's release could overtake. */
  #passesPlace(): boolean {
    return this.#queued && !this.#underWay && this.request.place?.pass() === true;
  }

  #isCalledOff(error: unknown): boolean {
    const { signal } = this.request;
    return signal?.aborted === true && error === signal.reason;
  }

  /** For as long as others may pause between two questions, so that each of them asks once. */
  async #letOthersAsk(): Promise<void> {
    const { deadline, signal } = this.request;
    await this.#wait(Math.min(this.patience.pollMs * 1.5 + AFTER_EXPIRY_MS, deadline.remainingMs / 2));
    signal?.throwIfAborted();
  }

  async #attemptAfter(delayMs: number): Promise<NewLease | null | number> {
    const { deadline, signal } = this.request;
    await this.#wait(delayMs);
    signal?.throwIfAborted();
    return deadline.passed ? this.#giveUp() : this.#attempt();
  }

  /** "Somebody has it" and "nobody answers" are different news, also when the time is up. */
  #giveUp(): null {
    if (this.#failing) throw this.#failing.error;
    if (this.#obstacle) throw this.#obstacle;
    return null;
  }

  /** A lease, or `null` when it is too late for one, or after how many milliseconds to ask again. */
  #attempt(): Promise<NewLease | null | number> {
    const { owner, ttlMs, metadata, deadline } = this.request;
    const askedAt = deadline.clock.now();
    const leftBefore = this.#mayHaveLeftSomething;
    this.#sentAt = askedAt;
    this.#woken = false;
    this.#mayHaveLeftSomething = true;
    this.#underWay = true;
    const answer = this.store.tryAcquire(this.key, owner, ttlMs, metadata, this);
    this.#lastAttempt = leftBefore ? answer.catch(nothing) : answer;
    return this.#inTime(answer, askedAt).then(
      (attempt) => attempt && this.#onAnswer(attempt, this.#sentAt),
      (error: unknown) => {
        if (error instanceof NotSentError) this.#mayHaveLeftSomething = leftBefore;
        return this.#onFailure(error);
      },
    );
  }

  #onAnswer(answer: LeaseAttempt, sentAt: number): NewLease | number {
    if (!answer.acquired) return this.#onRefusal(answer, sentAt);
    const { lockDelayMs = 0, deadline } = this.request;
    const { ttlMs = this.request.ttlMs, sentAt: trustedFrom = sentAt, revoked } = answer;
    assertLockDelay(lockDelayMs, ttlMs, this.store);
    if (revoked?.aborted !== true && deadline.clock.now() < trustedUntil(trustedFrom, ttlMs - lockDelayMs))
      return { granted: answer, queued: this.#queued, sentAt };
    return this.#onFailure(new Error('the answer came after the lease had ended'));
  }

  #onRefusal({ retryAfterMs, holder, obstacle, staysInLine = false }: RefusedLease, sentAt: number): number {
    this.#slowestMs = Math.max(this.#slowestMs ?? 0, this.request.deadline.clock.now() - sentAt);
    this.#failing = undefined;
    this.#obstacle = obstacle;
    this.#underWay = false;
    this.#queued = this.#unwatch !== undefined;
    this.#mayHaveLeftSomething = this.#queued || staysInLine || this.request.place?.inherited === true;
    this.request.blockedBy?.(obstacle ?? holder);
    const { pollMs } = this.patience;
    const poll = pollMs / 2 + this.patience.random() * pollMs;
    return retryAfterMs === null ? poll : Math.min(poll, retryAfterMs + AFTER_EXPIRY_MS);
  }

  /** Rethrows what trying again will not mend in time. */
  #onFailure(error: unknown): number {
    const { clock, passed } = this.request.deadline;
    const now = clock.now();
    const { since, times } = this.#failing ?? { since: now, times: 0 };
    this.#failing = { since, times: times + 1, error };
    this.request.blockedBy?.(error instanceof Error ? error : new Error(String(error)));
    const patienceIsOver = now - since >= this.patience.patienceMs;
    if (passed || patienceIsOver || error instanceof LockError || this.request.signal?.aborted === true) throw error;
    return Math.min(FIRST_RETRY_MS * 2 ** times, LONGEST_RETRY_MS) + this.patience.random() * FIRST_RETRY_MS;
  }

  /** Not beyond the deadline. */
  async #wait(delayMs: number): Promise<void> {
    const { deadline, signal } = this.request;
    if (this.#woken || signal?.aborted === true) return;
    await new Promise<void>((resolve) => {
      const timer = deadline.clock.schedule(Math.min(delayMs, deadline.remainingMs), resolve);
      this.#wakeUp = () => {
        timer.cancel();
        resolve();
      };
      this.#callOff = this.#wakeUp;
    });
  }

  readonly #wake = (): void => {
    this.#woken = true;
    this.#wakeUp();
  };

  /**
   * Rejects when the caller gives up, or at the deadline. That may fall into the question, which is open for `SILENCE_MS` at
   * least. `null`: at the deadline the answer was merely on its way, and all before it were refusals.
   */
  #inTime<T>(answer: Promise<T>, askedAt: number): Promise<T | null> {
    const { deadline, signal } = this.request;
    const { clock, at } = deadline;
    return new Promise((resolve, reject) => {
      const onSilence = (): void => {
        if (this.#isMerelySlow(clock.now() - askedAt)) resolve(null);
        else reject(new Error('no answer before the deadline'));
      };
      const alarm = this.#once ? undefined : new Alarm(clock, Math.max(at, askedAt + SILENCE_MS), onSilence);
      this.#callOff = () => {
        alarm?.cancel();
        reject(signal?.reason);
      };
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
