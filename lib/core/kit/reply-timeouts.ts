import type { Clock, Timer } from '../time/timers.js';
import { replyTimeout } from '../time/reply-timeout.js';

/** Watches with one timer whether the replies to many requests are overdue. Needs no closing. */
export class ReplyTimeouts {
  #timer: Timer | undefined;
  #dueAt = NaN;
  #wasLate = false;

  constructor(
    private readonly clock: Clock,
    private readonly timeoutMs: number,
    /** Returns when the next reply is due, or `Infinity`. */
    private readonly nextDueAt: () => number,
    private readonly onOverdue: () => void,
  ) {}

  /** Begins to watch, because a request was sent. */
  start(): void {
    if (!this.#timer) this.#set(this.clock.now() + this.timeoutMs);
  }

  #set(dueAt: number): void {
    this.#dueAt = dueAt;
    this.#timer = replyTimeout(this.clock, dueAt - this.clock.now(), this.#look, { background: true });
  }

  readonly #look = (): void => {
    this.#timer = undefined;
    const now = this.clock.now();
    if (this.nextDueAt() <= now) {
      if (this.#isLate(now)) return this.#set(now + this.timeoutMs / 4);
      this.onOverdue();
    }
    this.#wasLate = false;
    const dueAt = this.nextDueAt();
    if (dueAt < Infinity && !this.#timer) this.#set(Math.max(dueAt, now + 1));
  };

  /** Returns whether this process was too late to judge: it could not read replies either. Not twice in a row. */
  #isLate(now: number): boolean {
    this.#wasLate = !this.#wasLate && now - this.#dueAt > this.timeoutMs / 4;
    return this.#wasLate;
  }
}
