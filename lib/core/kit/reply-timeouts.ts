import type { Clock, Timer } from '../time/timers.js';
import { scheduleReplyTimeout } from '../time/reply-timeout.js';

/** Watches with one timer whether the replies to many requests are overdue. Needs no close. */
export class ReplyTimeouts {
  #timer: Timer | undefined;
  #timerDueAt = NaN;
  #wasLastCheckLate = false;

  constructor(
    private readonly clock: Clock,
    private readonly timeoutMs: number,
    /** Returns the time by which the next reply is due, or `Infinity` when no request is unanswered. */
    private readonly nextDueAt: () => number,
    private readonly onOverdue: () => void,
  ) {}

  /** Starts the timer, if necessary, because a request was sent. */
  start(): void {
    if (!this.#timer) this.#setTimer(this.clock.now() + this.timeoutMs);
  }

  #setTimer(dueAt: number): void {
    this.#timerDueAt = dueAt;
    this.#timer = scheduleReplyTimeout(this.clock, dueAt - this.clock.now(), this.#checkReplies, { background: true });
  }

  readonly #checkReplies = (): void => {
    this.#timer = undefined;
    const now = this.clock.now();
    if (this.nextDueAt() <= now) {
      if (this.#wasProcessBlocked(now)) return this.#setTimer(now + this.timeoutMs / 4);
      this.onOverdue();
    }
    this.#wasLastCheckLate = false;
    const dueAt = this.nextDueAt();
    if (dueAt < Infinity && !this.#timer) this.#setTimer(Math.max(dueAt, now + 1));
  };

  /**
   * Returns whether the timer fired so late that this process could not read replies either. Never true twice in a row.
   */
  #wasProcessBlocked(now: number): boolean {
    this.#wasLastCheckLate = !this.#wasLastCheckLate && now - this.#timerDueAt > this.timeoutMs / 4;
    return this.#wasLastCheckLate;
  }
}
