import { replyTimeout } from './kit/reply-timeout.js';
import { GridTimer, TimerGrid } from './timer-grid.js';
import type { Clock, Timer } from './timers.js';

/** Alarms for less than this are not worth a place on the grid. */
const SHORTEST_ON_GRID_MS = 32;

/**
 * A reply time-out that is nearly always cancelled, and then costs next to nothing: until the last eighth of its time it waits
 * on the grid. Exact all the same. In the background.
 */
export class Alarm implements Timer {
  readonly #clock: Clock;
  readonly #at: number;
  readonly #onTime: () => void;
  #timer: Timer;

  /** @param at by `clock`; at `Infinity` it never rings */
  constructor(clock: Clock, at: number, onTime: () => void) {
    this.#clock = clock;
    this.#at = at;
    this.#onTime = onTime;
    const leftMs = at - clock.now();
    this.#timer = leftMs < SHORTEST_ON_GRID_MS || at === Infinity ? this.#exactly() : this.#onGrid(leftMs);
  }

  cancel(): void {
    this.#timer.cancel();
  }

  #onGrid(leftMs: number): Timer {
    const timer = new GridTimer(TimerGrid.of(this.#clock), () => (this.#timer = this.#exactly()));
    timer.setBy(this.#at, 2 ** Math.floor(Math.log2(leftMs / 8)));
    return timer;
  }

  #exactly(): Timer {
    return replyTimeout(this.#clock, this.#at - this.#clock.now(), this.#onTime, { background: true });
  }
}

/** Whether `task` was over within `ms`; what becomes of it later is nobody's concern. Rejects as `task` does in time. */
export function within(clock: Clock, ms: number, task: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = new Alarm(clock, clock.now() + ms, () => resolve(false));
    const onTime = (): void => {
      timer.cancel();
      resolve(true);
    };
    const onFailure = (error: unknown): void => {
      timer.cancel();
      reject(error);
    };
    task.then(onTime, onFailure);
  });
}
