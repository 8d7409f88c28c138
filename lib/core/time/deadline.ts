import { type Clock, systemClock } from './timers.js';

/** Monotonic time at which a task must have ended. */
export class Deadline {
  private constructor(
    readonly at: number,
    readonly clock: Clock,
  ) {}

  /** Returns the deadline `ms` after `from`. `0` has passed at once, and `Infinity` never passes. */
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
