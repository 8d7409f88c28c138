import { randomInt } from 'node:crypto';
import { LockError } from './errors.js';
import type { LeaseAttempt, LeaseStore } from './lease-store.js';
import type { AcquireRequest } from './lock-backend.js';
import type { NewLease } from './store-lease.js';
import type { Timer } from './timers.js';
import { trustedUntil } from './watchdog.js';

const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 500;
/** So much later than its end a lease has surely ended on the server's clock too. */
const AFTER_EXPIRY_MS = 5;

/** A store that answers does so within this time. */
const SILENCE_MS = 100;

const OVER = Symbol('the deadline passed, or the caller gave up');

/** One caller's way from asking a store to a lease, or to giving up. Used once. */
export class Contender {
  /** A request was sent that may have been carried out, or may have put us in a queue. */
  mayHaveLeftSomething = false;
  /** A clean-up has to come after it: a release that overtakes its acquire frees nothing. */
  lastAttempt: Promise<unknown> = Promise.resolve();
  /** The deadline passed, or the caller gave up. Whoever waits is told by `#onOver`: there is one thing at a time. */
  #over = false;
  #onOver: () => void = () => undefined;
  #forgetDeadline: () => void = () => undefined;
  #unwatch: (() => void) | undefined;
  #woken = false;
  #queued = false;
  #wakeUp: () => void = () => undefined;
  /** The failures in a row, by the last of them. */
  #failing: { readonly since: number; readonly times: number; readonly error: unknown } | undefined;

  constructor(
    private readonly store: LeaseStore,
    private readonly key: string,
    private readonly request: AcquireRequest,
    private readonly patience: { readonly pollMs: number; readonly patienceMs: number },
  ) {}

  /** Rejects with what the store said, or with the signal's reason. */
  async run(): Promise<NewLease | null> {
    const { deadline, signal } = this.request;
    signal?.throwIfAborted();
    const once = deadline.passed;
    this.#watchDeadline(once);
    if (!once) this.#unwatch = this.store.watch?.(this.key, this.request.owner, this.#wake);
    if (this.request.yields === true && !once && !this.#unwatch) await this.#letOthersAsk();
    for (;;) {
      const next = await this.#attempt();
      if (typeof next === 'object') return next;
      if (once) return null;
      await this.#wait(next);
      signal?.throwIfAborted();
      if (deadline.passed) return this.#giveUp();
    }
  }

  /** For as long as others may pause between two questions, so that each of them asks once. */
  async #letOthersAsk(): Promise<void> {
    const { deadline, signal } = this.request;
    await this.#wait(Math.min(this.patience.pollMs * 1.5 + AFTER_EXPIRY_MS, deadline.remainingMs / 2));
    signal?.throwIfAborted();
  }

  /** "Somebody has it" and "nobody answers" are different news, also when the time is up. */
  #giveUp(): null {
    if (this.#failing) throw this.#failing.error;
    return null;
  }

  end(): void {
    this.#unwatch?.();
    this.#forgetDeadline();
  }

  /** A lease, or `null` when it is too late for one, or after how many milliseconds to ask again. */
  async #attempt(): Promise<NewLease | null | number> {
    const { owner, ttlMs, lockDelayMs = 0, metadata, deadline, signal } = this.request;
    const sentAt = deadline.clock.now();
    this.#woken = false;
    this.mayHaveLeftSomething = true;
    try {
      const asked = this.store.tryAcquire(this.key, owner, ttlMs, metadata);
      this.lastAttempt = asked;
      const answer = await this.#unlessOver(asked);
      if (answer === OVER) {
        signal?.throwIfAborted();
        return this.#onFailure(new Error('no answer before the deadline'));
      }
      if (!answer.acquired) return this.#onRefusal(answer);
      if (deadline.clock.now() < trustedUntil(sentAt, ttlMs - lockDelayMs))
        return { fencingToken: answer.fencingToken, queued: this.#queued, sentAt };
      return this.#onFailure(new Error('the answer came after the lease had ended'));
    } catch (error) {
      return this.#onFailure(error);
    }
  }

  #onRefusal({ retryAfterMs, holder }: LeaseAttempt & { acquired: false }): number {
    this.#failing = undefined;
    this.#queued = this.#unwatch !== undefined;
    this.mayHaveLeftSomething = this.#queued;
    if (holder) this.request.blockedBy?.(holder);
    const { pollMs } = this.patience;
    const poll = pollMs / 2 + randomInt(Math.ceil(pollMs) + 1);
    return retryAfterMs === null ? poll : Math.min(poll, retryAfterMs + AFTER_EXPIRY_MS);
  }

  /** Rethrows what trying again will not mend in time. */
  #onFailure(error: unknown): number {
    const { clock, passed } = this.request.deadline;
    const now = clock.now();
    const { since, times } = this.#failing ?? { since: now, times: 0 };
    this.#failing = { since, times: times + 1, error };
    const patienceIsOver = now - since >= this.patience.patienceMs;
    if (passed || patienceIsOver || error instanceof LockError || this.request.signal?.aborted === true) throw error;
    return Math.min(FIRST_RETRY_MS * 2 ** times, LONGEST_RETRY_MS) + randomInt(FIRST_RETRY_MS);
  }

  async #wait(delayMs: number): Promise<void> {
    if (this.#woken || this.#over) return;
    const { clock } = this.request.deadline;
    await new Promise<void>((resolve) => {
      const timer = clock.schedule(delayMs, resolve);
      this.#wakeUp = () => {
        timer.cancel();
        resolve();
      };
      this.#onOver = this.#wakeUp;
    });
  }

  readonly #wake = (): void => {
    this.#woken = true;
    this.#wakeUp();
  };

  /**
   * The store's answer, or `OVER`. The deadline may fall into the question, which is then open for `SILENCE_MS` at least.
   * After a blocked event loop timers come before the answers that have arrived meanwhile: those are read first.
   */
  #unlessOver<T>(answer: Promise<T>): Promise<T | typeof OVER> {
    const { deadline, signal } = this.request;
    const { clock } = deadline;
    const silentAt = clock.now() + SILENCE_MS;
    let timer: Timer | undefined;
    return new Promise((resolve, reject) => {
      this.#onOver = () => {
        if (signal?.aborted === true) resolve(OVER);
        else timer = clock.schedule(silentAt - clock.now(), () => void setImmediate(resolve, OVER));
      };
      if (this.#over) this.#onOver();
      const onAnswer = (value: T): void => {
        timer?.cancel();
        resolve(value);
      };
      const onFailure = (error: unknown): void => {
        timer?.cancel();
        reject(error);
      };
      answer.then(onAnswer, onFailure);
    });
  }

  /** The one who tries once has no deadline but the store's own. */
  #watchDeadline(once: boolean): void {
    const { deadline, signal } = this.request;
    const end = (): void => {
      this.#over = true;
      this.#onOver();
    };
    const timer = once ? undefined : deadline.clock.schedule(deadline.remainingMs, end);
    signal?.addEventListener('abort', end, { once: true });
    this.#forgetDeadline = () => {
      timer?.cancel();
      signal?.removeEventListener('abort', end);
    };
  }
}
