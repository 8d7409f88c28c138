import { replyTimeout } from './reply-timeout.js';
import type { Clock } from './timers.js';

/** Resolves to whether `task` was over within `ms`. Rejects if `task` does in time; later its outcome is ignored. */
export function within(clock: Clock, ms: number, task: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = replyTimeout(clock, ms, () => resolve(false), { background: true });
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
