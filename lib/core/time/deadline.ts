import { type Clock, systemClock } from './timers.js';

/** Time on the monotonic clock by which a task must be over. */
export class Deadline {
  private constructor(
    readonly at: number,
    readonly clock: Clock,
  ) {}

  /** Returns the deadline after `ms`: `0` is past at once, `Infinity` never comes. @param from time by the clock */
  static after(ms: number, clock: Clock = systemClock, from = clock.now()): Deadline {
    return new Deadline(from + ms, clock);
  }

  get passed(): boolean {
    return this.clock.now() >= this.at;
  }

  get remainingMs(): number {
    return Math.max(0, this.at - this.clock.now());
  }
}
