// A test framework may replace the global ones by fakes, in the middle of a lease that a server counts in real time.
import { performance } from 'node:perf_hooks';
import { clearTimeout, setTimeout } from 'node:timers';
import { AbortListener } from './abort-listener.js';

/** A pending callback. Cancelling one that ran or was cancelled does nothing. */
export interface Timer {
  cancel(): void;
}

/** The monotonic time that a lock service lives by. Only tests replace it: see `ManualClock` in `./testing`. */
export interface Clock {
  /** Milliseconds since an arbitrary start; never steps back, whatever happens to the wall clock. */
  now(): number;
  /**
   * Runs `callback` once, `delayMs` from now. Any delay is allowed; `Infinity` never runs. A background timer does not
   * keep the process alive: a waiter needs its wake-up, a watchdog must not outlive the program.
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
      listener?.end();
      resolve();
    };
    const timer = clock.schedule(delayMs, end, options);
    const listener = until && new AbortListener(until, end);
  });
}
