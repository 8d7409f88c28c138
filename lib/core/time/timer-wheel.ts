import { runWithoutContext } from './without-context.js';
import { type Linked, LinkedQueue } from './linked-queue.js';
import { setTimeout } from './real-timers.js';
import type { Clock, Timer } from './timers.js';

/** Maximum number of callbacks in one iteration of the event loop, so that other work is not delayed. */
const MAX_CALLBACKS_PER_ITERATION = 250;

/**
 * Pause between two iterations with callbacks, in which answers are read. With 100,000 locks the pause makes requests a
 * third cheaper.
 */
const PAUSE_MS = 1;

/** Number of grid points up to which an empty point is kept, because a new timer often needs the same time. */
const MAX_KEPT_POINTS = 64;

const wheelsByClock = new WeakMap<Clock, TimerWheel>();

/** Timers that are due at one time of the grid. */
class GridPoint extends LinkedQueue<WheelTimer> {
  clockTimer: Timer | undefined;

  constructor(readonly time: number) {
    super();
  }
}

/**
 * Runs callbacks at the times of a coarse grid. All callbacks of a grid point run together, so that their requests can
 * be sent as one batch. The timers do not keep the process alive.
 */
export class TimerWheel {
  readonly #gridPoints = new Map<number, GridPoint>();

  constructor(private readonly clock: Clock) {}

  static of(clock: Clock): TimerWheel {
    const existingWheel = wheelsByClock.get(clock);
    if (existingWheel) return existingWheel;
    const wheel = new TimerWheel(clock);
    wheelsByClock.set(clock, wheel);
    return wheel;
  }

  getOrCreateGridPoint(time: number): GridPoint {
    return this.#gridPoints.get(time) ?? this.#createGridPoint(time);
  }

  /** @internal Removes an empty grid point if there are many points, because each TTL adds grid points of its own. */
  discardEmptyPoint(point: GridPoint): void {
    if (this.#gridPoints.size <= MAX_KEPT_POINTS || this.#gridPoints.get(point.time) !== point) return;
    this.#gridPoints.delete(point.time);
    point.clockTimer?.cancel();
  }

  #createGridPoint(time: number): GridPoint {
    const point = new GridPoint(time);
    this.#gridPoints.set(time, point);
    const run = (): void => {
      this.#gridPoints.delete(time);
      runDueTimers(point);
    };
    point.clockTimer = runWithoutContext(() => this.clock.schedule(time - this.clock.now(), run, { background: true }));
    return point;
  }
}

function runDueTimers(point: GridPoint): void {
  for (let count = 0; count < MAX_CALLBACKS_PER_ITERATION; count += 1) {
    const timer = point.first;
    if (!timer) return;
    timer.run();
  }
  setTimeout(runDueTimers, PAUSE_MS, point);
}

export class WheelTimer implements Timer, Linked<WheelTimer> {
  previous: WheelTimer | undefined;
  next: WheelTimer | undefined;
  queue: GridPoint | undefined;

  constructor(
    private readonly wheel: TimerWheel,
    private readonly callback: () => void,
  ) {}

  setAtOrBefore(time: number, gridMs: number): void {
    this.#setAt(Math.floor(time / gridMs) * gridMs);
  }

  setAtOrAfter(time: number, gridMs: number): void {
    const pointTime = Math.ceil(time / gridMs) * gridMs;
    // A point that rounding has put before `time` would fire again and again.
    this.#setAt(pointTime < time ? pointTime + gridMs : pointTime);
  }

  cancel(): void {
    const point = this.queue;
    point?.delete(this);
    if (point && !point.first) this.wheel.discardEmptyPoint(point);
  }

  run(): void {
    this.cancel();
    this.callback();
  }

  #setAt(time: number): void {
    this.cancel();
    this.wheel.getOrCreateGridPoint(time).push(this);
  }
}
