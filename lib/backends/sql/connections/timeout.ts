import type { Deadline } from '../../../core/index.js';
import { DatabaseError } from './database-error.js';

export class TimeoutError extends DatabaseError {
  /** @param optionText the option that limits the time, with its value */
  constructor(failureText: string, optionText?: string) {
    super(`${failureText} in time${optionText === undefined ? '' : ` (${optionText})`}`, 'ETIMEDOUT');
  }
}

/**
 * Settles as `promise` does, or rejects at the deadline. A blocked event loop makes the timer late. The promise then
 * gets as much time again, because its answer may have arrived meanwhile.
 */
export function settleByDeadline<T>(
  deadline: Deadline,
  failureText: string,
  promise: Promise<T>,
  optionText?: string,
): Promise<T> {
  const { clock } = deadline;
  return new Promise<T>((resolve, reject) => {
    const rejectLate = (): void => reject(new TimeoutError(failureText, optionText));
    let timer = clock.schedule(deadline.remainingMs, () => {
      timer = clock.schedule(clock.now() - deadline.at, rejectLate);
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
