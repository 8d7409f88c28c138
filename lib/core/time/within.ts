import { scheduleReplyTimeout } from './reply-timeout.js';
import type { Clock } from './timers.js';

/**
 * Resolves to true if `task` is fulfilled within `ms`, and to false otherwise. Rejects if `task` rejects within `ms`; a
 * later rejection is ignored.
 */
export function isFulfilledWithin(clock: Clock, ms: number, task: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = scheduleReplyTimeout(clock, ms, () => resolve(false), { background: true });
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
