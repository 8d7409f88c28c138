import { detached } from '../kit/detached.js';
import { type Linked, LinkedQueue } from '../kit/linked-queue.js';
import type { Clock, Timer } from './timers.js';

type Slot = LinkedQueue<WheelTimer>;

/** The most callbacks of one turn of the event loop; more would keep everything else waiting. */
const MOST_IN_A_TURN = 250;

const grids = new WeakMap<Clock, TimerWheel>();

/**
 * Runs callbacks on a coarse grid, all of one grid point together in one turn of the event loop: a thousand locks that
 * are renewed in the same turn share a request, and have a timer together. In the background only.
 */
export class TimerWheel {
  readonly #slots = new Map<number, Slot>();

  constructor(private readonly clock: Clock) {}

  /** The one that all users of a clock share. */
  static of(clock: Clock): TimerWheel {
    const known = grids.get(clock);
    if (known) return known;
    const grid = new TimerWheel(clock);
    grids.set(clock, grid);
    return grid;
  }

  /** @internal Where the timers of a grid point are kept until its time has come. */
  slotAt(time: number): Slot {
    return this.#slots.get(time) ?? this.#open(time);
  }

  #open(time: number): Slot {
    const slot: Slot = new LinkedQueue();
    this.#slots.set(time, slot);
    const run = (): void => {
      this.#slots.delete(time);
      runInTurns(slot);
    };
    detached(() => this.clock.schedule(time - this.clock.now(), run, { background: true }));
    return slot;
  }
}

/** Goes on in the next turn where it stopped, and never comes to what was cancelled meanwhile. */
function runInTurns(slot: Slot): void {
  for (let count = 0; count < MOST_IN_A_TURN; count += 1) {
    const timer = slot.first;
    if (!timer) return;
    timer.run();
  }
  setImmediate(runInTurns, slot);
}

/** A timer on the grid that can be set again and again. */
export class WheelTimer implements Timer, Linked<WheelTimer> {
  /** @internal */
  before: WheelTimer | undefined;
  /** @internal */
  after: WheelTimer | undefined;
  /** @internal */
  queue: Slot | undefined;

  constructor(
    private readonly grid: TimerWheel,
    private readonly callback: () => void,
  ) {}

  /** Runs once, never later than `time`, and never earlier by more than the grid. */
  setBy(time: number, gridMs: number): void {
    this.#setAt(Math.floor(time / gridMs) * gridMs);
  }

  /** Runs once, never earlier than `time`, and never later by more than the grid. */
  setFrom(time: number, gridMs: number): void {
    const point = Math.ceil(time / gridMs) * gridMs;
    // Rounding may put it before `time`: who is then set again for what is over would run for ever.
    this.#setAt(point < time ? point + gridMs : point);
  }

  cancel(): void {
    this.queue?.delete(this);
  }

  /** @internal Its time has come. */
  run(): void {
    this.cancel();
    this.callback();
  }

  #setAt(time: number): void {
    this.cancel();
    this.grid.slotAt(time).push(this);
  }
}
