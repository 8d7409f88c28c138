import { type Clock, systemClock } from './timers.js';

/** A point on the monotonic clock by which something must be over. */
export class Deadline {
  private constructor(
    readonly at: number,
    readonly clock: Clock,
  ) {}

  /** `0` is past at once, `Infinity` never comes. @param from by the clock; now if it is not given */
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
