import type { Deadline } from '../../core/index.js';
import { DatabaseError } from './clean-error.js';

export class TimeLimitError extends DatabaseError {
  constructor(what: string) {
    super(`${what} in time`, 'ETIMEDOUT');
  }
}

/** What `promise` settles to, or a rejection at `deadline`. What it does after that is nobody's concern any more. */
export async function within<T>(deadline: Deadline, what: string, promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return new Promise<T>((resolve, reject) => {
    const late = (): void => reject(new TimeLimitError(what));
    const timer = deadline.clock.schedule(deadline.remainingMs, late);
    promise.then(resolve, reject).finally(() => timer.cancel());
  });
}
