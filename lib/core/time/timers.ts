import { AbortListener } from './abort-listener.js';
import { clearTimeout, monotonicNow, setTimeout } from './real-timers.js';

/** Scheduled callback. `cancel` does nothing after the callback has run or the timer was cancelled. */
export interface Timer {
  cancel(): void;
}

/** Monotonic clock of a lock service. Only tests replace the clock: see `ManualClock` in `./testing`. */
export interface Clock {
  /** Returns the milliseconds since an arbitrary start. The result never decreases, whatever the wall clock does. */
  now(): number;
  /**
   * Runs `callback` once, `delayMs` from now. Any delay is allowed; `Infinity` never runs. A background timer does not
   * keep the process alive.
   */
  schedule(delayMs: number, callback: () => void, options?: { readonly background?: boolean }): Timer;
}

/** Maximum delay of a timer of Node. A timer with a longer delay would fire at once: longer delays are split. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const NO_TIMER: Timer = { cancel: () => undefined };

class SystemTimer implements Timer {
  #timeout: NodeJS.Timeout | undefined;

  constructor(
    delayMs: number,
    private readonly callback: () => void,
    private readonly background: boolean,
  ) {
    this.#startTimeout(delayMs);
  }

  cancel(): void {
    clearTimeout(this.#timeout);
  }

  #startTimeout(delayMs: number): void {
    this.#timeout =
      delayMs > MAX_TIMER_MS
        ? setTimeout(() => this.#startTimeout(delayMs - MAX_TIMER_MS), MAX_TIMER_MS)
        : setTimeout(this.callback, Math.max(0, Math.ceil(delayMs)));
    if (this.background) this.#timeout.unref();
  }
}

export const systemClock: Clock = {
  now: monotonicNow,
  schedule: (delayMs, callback, options) =>
    delayMs === Infinity ? NO_TIMER : new SystemTimer(delayMs, callback, options?.background === true),
};

/** Resolves after `delayMs`, or when `signal` aborts. A background pause does not keep the process alive. */
export function pause(
  clock: Clock,
  delayMs: number,
  { signal, ...options }: { readonly background?: boolean; readonly signal?: AbortSignal } = {},
): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const finish = (): void => {
      timer.cancel();
      listener?.end();
      resolve();
    };
    const timer = clock.schedule(delayMs, finish, options);
    const listener = signal && new AbortListener(signal, finish);
  });
}
