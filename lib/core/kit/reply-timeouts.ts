import type { Clock, Timer } from '../time/timers.js';
import { replyTimeout } from '../time/reply-timeout.js';

/** One timer for the replies to all questions: it looks when the first of them may be overdue. Needs no closing. */
export class ReplyTimeouts {
  #timer: Timer | undefined;
  #dueAt = NaN;
  #wasLate = false;

  constructor(
    private readonly clock: Clock,
    private readonly timeoutMs: number,
    /** `Infinity`: nothing is due. */
    private readonly nextDueAt: () => number,
    private readonly onOverdue: () => void,
  ) {}

  /** Something is due from now on, in no less than the time-out. */
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

  /** A process that could not look in time could not send or read either. Holds once in a row. */
  #isLate(now: number): boolean {
    this.#wasLate = !this.#wasLate && now - this.#dueAt > this.timeoutMs / 4;
    return this.#wasLate;
  }
}
