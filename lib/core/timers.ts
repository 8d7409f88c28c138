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
    const timer = clock.schedule(ms, () => resolve(false));
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

/** Callbacks that run in one turn of the event loop. Whoever takes its own out is not called. */
export type TimerSlot = Set<() => void>;

/**
 * Runs callbacks on a coarse grid, all of one grid point together in one turn of the event loop: a thousand locks that are
 * renewed in the same turn share a request, and have a timer together.
 */
export class TimerGrid {
  readonly #slots = new Map<number, TimerSlot>();

  constructor(private readonly clock: Clock) {}

  /** Never later than `time`, and never earlier by more than the grid. */
  by(time: number, gridMs: number, callback: () => void): TimerSlot {
    return this.#at(Math.floor(time / gridMs) * gridMs, callback);
  }

  /** Never earlier than `time`, and never later by more than the grid. */
  from(time: number, gridMs: number, callback: () => void): TimerSlot {
    return this.#at(Math.ceil(time / gridMs) * gridMs, callback);
  }

  #at(time: number, callback: () => void): TimerSlot {
    return (this.#slots.get(time) ?? this.#open(time)).add(callback);
  }

  #open(time: number): TimerSlot {
    const slot: TimerSlot = new Set();
    this.#slots.set(time, slot);
    const run = (): void => {
      this.#slots.delete(time);
      // Not before: as long as it has not begun, an iterator keeps alive what was taken out of its set.
      runInTurns(slot.values());
    };
    this.clock.schedule(time - this.clock.now(), run, { background: true });
    return slot;
  }
}

/** Goes on in the next turn where it stopped, and never comes to what was taken out meanwhile. */
function runInTurns(callbacks: IterableIterator<() => void>): void {
  let count = 0;
  for (const callback of callbacks) {
    callback();
    count += 1;
    if (count === MOST_IN_A_TURN) return void setImmediate(runInTurns, callbacks);
  }
}
