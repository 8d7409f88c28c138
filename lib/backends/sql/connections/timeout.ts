import type { Deadline } from '../../../core/index.js';
import { DatabaseError } from './database-error.js';

export class TimeoutError extends DatabaseError {
  /**
   * @param failureText beginning of the message, which goes on with ` in time`
   * @param optionText the option that limits the time, with its value
   */
  constructor(failureText: string, optionText?: string) {
    super(`${failureText} in time${optionText === undefined ? '' : ` (${optionText})`}`, 'ETIMEDOUT');
  }
}

/** Maximum extra time. A process that was suspended for an hour needs no hour to read the answers that have arrived. */
const MAX_EXTRA_MS = 10_000;

/**
 * Settles as `promise` does, or rejects at the deadline. If a blocked event loop makes the timer late, the promise gets
 * that delay as extra time, because its answer may have arrived meanwhile.
 */
export function settleByDeadline<T>(
  deadline: Deadline,
  failureText: string,
  promise: Promise<T>,
  optionText?: string,
): Promise<T> {
  const { clock } = deadline;
  return new Promise<T>((resolve, reject) => {
    const rejectWithTimeout = (): void => reject(new TimeoutError(failureText, optionText));
    let timer = clock.schedule(deadline.remainingMs, () => {
      timer = clock.schedule(Math.min(clock.now() - deadline.at, MAX_EXTRA_MS), rejectWithTimeout);
    });
    const settleWith =
      <A>(settle: (answer: A) => void) =>
      (answer: A): void => {
        timer.cancel();
        settle(answer);
      };
    promise.then(settleWith(resolve), settleWith<unknown>(reject));
  });
}
