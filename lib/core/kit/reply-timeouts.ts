import type { Clock, Timer } from '../time/timers.js';
import { scheduleReplyTimeout } from '../time/reply-timeout.js';

/** Watches whether the replies to many requests are overdue, with one timer that does not keep the process alive. */
export class ReplyTimeouts {
  #timer: Timer | undefined;
  #timerDueAt = NaN;
  #hasExcusedLateCheck = false;

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
      if (this.#tryExcuseLateCheck(now)) return this.#setTimer(now + this.timeoutMs / 4);
      this.onOverdue();
    }
    this.#hasExcusedLateCheck = false;
    const dueAt = this.nextDueAt();
    if (dueAt < Infinity && !this.#timer) this.#setTimer(Math.max(dueAt, now + 1));
  };

  /**
   * Returns whether to excuse a late check: a blocked process has not read the replies that may have arrived. Only one
   * late check in a row is excused, so that a missing reply is noticed in the end.
   */
  #tryExcuseLateCheck(now: number): boolean {
    this.#hasExcusedLateCheck = !this.#hasExcusedLateCheck && now - this.#timerDueAt > this.timeoutMs / 4;
    return this.#hasExcusedLateCheck;
  }
}
