import type { Deadline } from '../../../core/index.js';
import { DatabaseError } from './database-error.js';

export class TimeoutError extends DatabaseError {
  /** @param setting the option that limits the time, with its value */
  constructor(what: string, setting?: string) {
    super(`${what} in time${setting === undefined ? '' : ` (${setting})`}`, 'ETIMEDOUT');
  }
}

/**
 * Settles as `promise` does, or rejects at the deadline. After a blocked event loop the timer is late, and the promise
 * has as long again: unlike with `replyTimeout` several statements may follow each other.
 */
export function within<T>(deadline: Deadline, what: string, promise: Promise<T>, setting?: string): Promise<T> {
  const { clock } = deadline;
  return new Promise<T>((resolve, reject) => {
    const late = (): void => reject(new TimeoutError(what, setting));
    let timer = clock.schedule(deadline.remainingMs, () => {
      timer = clock.schedule(clock.now() - deadline.at, late);
    });
    const end =
      <A>(settle: (answer: A) => void) =>
      (answer: A): void => {
        timer.cancel();
        settle(answer);
      };
    promise.then(end(resolve), end<unknown>(reject));
  });
}
