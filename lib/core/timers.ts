/** A pending callback. Cancelling one that ran or was cancelled does nothing. */
export interface Timer {
  cancel(): void;
}

/** The monotonic time that a lock service lives by. Replaced only by tests: see `ManualClock` in the `testing` sub-path. */
export interface Clock {
  /** Milliseconds since an arbitrary start; never steps back, whatever happens to the wall clock. */
  now(): number;
  /**
   * Runs `callback` once, `delayMs` from now. Any delay is allowed; `Infinity` never runs.
   * A background timer does not keep the process alive: a waiter needs its wake-up, a watchdog must not outlive the program.
   */
  schedule(delayMs: number, callback: () => void, options?: { readonly background?: boolean }): Timer;
}

/** Node runs a timer at once when its delay exceeds a signed 32-bit number, so longer ones are taken in stages. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const NO_TIMER: Timer = { cancel: () => undefined };

class SystemTimer implements Timer {
  #timeout: NodeJS.Timeout | undefined;

  constructor(
    delayMs: number,
    private readonly callback: () => void,
    private readonly background: boolean,
  ) {
    this.#arm(delayMs);
  }

  cancel(): void {
    clearTimeout(this.#timeout);
  }

  #arm(delayMs: number): void {
    this.#timeout =
      delayMs > LONGEST_TIMER_MS
        ? setTimeout(() => this.#arm(delayMs - LONGEST_TIMER_MS), LONGEST_TIMER_MS)
        : setTimeout(this.callback, Math.max(0, Math.ceil(delayMs)));
    if (this.background) this.#timeout.unref();
  }
}

export const systemClock: Clock = {
  now: () => performance.now(),
  schedule: (delayMs, callback, options) =>
    delayMs === Infinity ? NO_TIMER : new SystemTimer(delayMs, callback, options?.background === true),
};

/** Resolves after `delayMs`, or once `until` aborts. A background pause does not keep the process alive. */
export function pause(
  clock: Clock,
  delayMs: number,
  { until, ...options }: { readonly background?: boolean; readonly until?: AbortSignal } = {},
): Promise<void> {
  return new Promise((resolve) => {
    if (until?.aborted === true) return resolve();
    const end = (): void => {
      timer.cancel();
      until?.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.schedule(delayMs, end, options);
    until?.addEventListener('abort', end);
  });
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

/** Alarms for less than this are not worth a place on the grid. */
const SHORTEST_ON_GRID_MS = 32;

/**
 * A timer that is nearly always cancelled, and then costs next to nothing: until the last eighth of its time it waits on the
 * grid. Exact all the same. In the background.
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
    return this.#clock.schedule(this.#at - this.#clock.now(), this.#onTime, { background: true });
  }
}
