import type { Clock, Timer } from './timers.js';

/** So many callbacks are one turn's work; with more of them whatever else happens would have to wait. */
const MOST_IN_A_TURN = 250;

const grids = new WeakMap<Clock, TimerGrid>();

/**
 * Runs callbacks on a coarse grid, all of one grid point together in one turn of the event loop: a thousand locks that are
 * renewed in the same turn share a request, and have a timer together. In the background only.
 */
export class TimerGrid {
  readonly #slots = new Map<number, GridTimer[]>();

  constructor(private readonly clock: Clock) {}

  /** The one that all users of a clock share. */
  static of(clock: Clock): TimerGrid {
    const known = grids.get(clock);
    if (known) return known;
    const grid = new TimerGrid(clock);
    grids.set(clock, grid);
    return grid;
  }

  /** @internal Where the callbacks of a grid point are kept until its time has come. */
  slotAt(time: number): GridTimer[] {
    return this.#slots.get(time) ?? this.#open(time);
  }

  #open(time: number): GridTimer[] {
    const slot: GridTimer[] = [];
    this.#slots.set(time, slot);
    const run = (): void => {
      this.#slots.delete(time);
      runInTurns(slot);
    };
    this.clock.schedule(time - this.clock.now(), run, { background: true });
    return slot;
  }
}

/** Goes on in the next turn where it stopped, and never comes to what was cancelled meanwhile. */
function runInTurns(slot: GridTimer[]): void {
  for (let count = 0; count < MOST_IN_A_TURN; count += 1) {
    const timer = slot.pop();
    if (!timer) return;
    timer.run();
  }
  setImmediate(runInTurns, slot);
}

/**
 * A timer on the grid that can be set again and again. It takes itself out of its slot without leaving anything there: a `Set`
 * would leave its former tables behind, in the heap's old part after a while, where they keep alive what they once had until
 * the next full collection.
 */
export class GridTimer implements Timer {
  #slot: GridTimer[] | undefined;
  #place = 0;

  constructor(
    private readonly grid: TimerGrid,
    private readonly callback: () => void,
  ) {}

  /** Runs once, never later than `time`, and never earlier by more than the grid. */
  setBy(time: number, gridMs: number): void {
    this.#setAt(Math.floor(time / gridMs) * gridMs);
  }

  /** Runs once, never earlier than `time`, and never later by more than the grid. */
  setFrom(time: number, gridMs: number): void {
    this.#setAt(Math.ceil(time / gridMs) * gridMs);
  }

  cancel(): void {
    const last = this.#slot?.pop();
    if (last && last !== this) last.#moveTo(this.#place, this.#slot);
    this.#slot = undefined;
  }

  /** @internal The slot has let go of it. */
  run(): void {
    this.#slot = undefined;
    this.callback();
  }

  #setAt(time: number): void {
    this.cancel();
    const slot = this.grid.slotAt(time);
    this.#slot = slot;
    this.#place = slot.push(this) - 1;
  }

  #moveTo(place: number, slot: GridTimer[] | undefined): void {
    if (slot) slot[place] = this;
    this.#place = place;
  }
}
