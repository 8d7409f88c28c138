import { setTimeout } from 'node:timers';
import { runDetached } from './detached.js';
import { type Linked, LinkedQueue } from './linked-queue.js';
import type { Clock, Timer } from './timers.js';

/** Maximum number of callbacks in one iteration of the event loop, so that other work is not delayed. */
const MAX_PER_ITERATION = 250;

/**
 * Pause between two such iterations, so that answers are read. With 100,000 locks it makes requests a third cheaper.
 */
const PAUSE_MS = 1;

/** Maximum number of grid points at which an empty one is kept, because a new timer often needs it again. */
const MAX_KEPT_POINTS = 64;

const wheels = new WeakMap<Clock, TimerWheel>();

/** @internal Timers that fire at the same time of the grid. */
class GridPoint extends LinkedQueue<WheelTimer> {
  /** Timer of the clock that runs all timers of the grid point. */
  clockTimer: Timer | undefined;

  constructor(readonly time: number) {
    super();
  }
}

/**
 * Runs callbacks at the times of a coarse grid. All callbacks of one grid point share a timer and run together, so that
 * their requests can be sent as one batch. They do not keep the process alive.
 */
export class TimerWheel {
  readonly #gridPoints = new Map<number, GridPoint>();

  constructor(private readonly clock: Clock) {}

  /** Returns the wheel that all users of a clock share. */
  static of(clock: Clock): TimerWheel {
    const existing = wheels.get(clock);
    if (existing) return existing;
    const wheel = new TimerWheel(clock);
    wheels.set(clock, wheel);
    return wheel;
  }

  /** @internal */
  gridPointAt(time: number): GridPoint {
    return this.#gridPoints.get(time) ?? this.#createGridPoint(time);
  }

  /** @internal Removes an empty grid point if there are many, because each TTL has its own. */
  onEmpty(point: GridPoint): void {
    if (this.#gridPoints.size <= MAX_KEPT_POINTS || this.#gridPoints.get(point.time) !== point) return;
    this.#gridPoints.delete(point.time);
    point.clockTimer?.cancel();
  }

  #createGridPoint(time: number): GridPoint {
    const point = new GridPoint(time);
    this.#gridPoints.set(time, point);
    const run = (): void => {
      this.#gridPoints.delete(time);
      runInIterations(point);
    };
    point.clockTimer = runDetached(() => this.clock.schedule(time - this.clock.now(), run, { background: true }));
    return point;
  }
}

/** Runs the timers of a grid point, some in each iteration of the event loop. */
function runInIterations(point: GridPoint): void {
  for (let count = 0; count < MAX_PER_ITERATION; count += 1) {
    const timer = point.first;
    if (!timer) return;
    timer.run();
  }
  setTimeout(runInIterations, PAUSE_MS, point);
}

/** Timer for the times of a grid that can be set repeatedly. */
export class WheelTimer implements Timer, Linked<WheelTimer> {
  /** @internal */
  before: WheelTimer | undefined;
  /** @internal */
  after: WheelTimer | undefined;
  /** @internal */
  queue: GridPoint | undefined;

  constructor(
    private readonly wheel: TimerWheel,
    private readonly callback: () => void,
  ) {}

  /** Sets the timer to the last grid point that is not later than `time`. */
  setAtOrBefore(time: number, gridMs: number): void {
    this.#setAt(Math.floor(time / gridMs) * gridMs);
  }

  /** Sets the timer to the first grid point that is not earlier than `time`. */
  setAtOrAfter(time: number, gridMs: number): void {
    const pointTime = Math.ceil(time / gridMs) * gridMs;
    // A point that rounding has put before `time` would fire again and again.
    this.#setAt(pointTime < time ? pointTime + gridMs : pointTime);
  }

  cancel(): void {
    const point = this.queue;
    point?.delete(this);
    if (point && !point.first) this.wheel.onEmpty(point);
  }

  /** @internal Called by the wheel when the grid point's time has come. */
  run(): void {
    this.cancel();
    this.callback();
  }

  #setAt(time: number): void {
    this.cancel();
    this.wheel.gridPointAt(time).push(this);
  }
}
