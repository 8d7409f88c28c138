import { replyTimeout } from './reply-timeout.js';
import type { Clock } from './timers.js';

/**
 * Resolves to true if `task` is fulfilled within `ms`, and to false if the time ends first. Rejects with the error of a
 * `task` that fails in time. A later failure is ignored.
 */
export function settlesWithin(clock: Clock, ms: number, task: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = replyTimeout(clock, ms, () => resolve(false), { background: true });
    const onFulfilled = (): void => {
      timer.cancel();
      resolve(true);
    };
    const onFailure = (error: unknown): void => {
      timer.cancel();
      reject(error);
    };
    task.then(onFulfilled, onFailure);
  });
}
