import { replyTimeout } from '../kit/reply-timeout.js';
import type { Clock } from './timers.js';

/** Whether `task` was over within `ms`; what becomes of it later is nobody's concern. Rejects as `task` does in time. */
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
