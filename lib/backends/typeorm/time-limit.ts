import type { Deadline } from '../../core/index.js';
import { DatabaseError } from './clean-error.js';

export class TimeLimitError extends DatabaseError {
  constructor(what: string) {
    super(`${what} in time`, 'ETIMEDOUT');
  }
}

/**
 * What `promise` settles to, or a rejection at `deadline`. What it does after that is nobody's concern any more. A timer that is
 * late shows that it was we who were away, with a blocked event loop: what has arrived meanwhile is then read first.
 */
export async function within<T>(deadline: Deadline, what: string, promise: Promise<T>): Promise<T> {
  const { clock } = deadline;
  promise.catch(() => undefined);
  return new Promise<T>((resolve, reject) => {
    const late = (): void => reject(new TimeLimitError(what));
    let timer = clock.schedule(deadline.remainingMs, () => {
      timer = clock.schedule(clock.now() - deadline.at, late);
    });
    promise.then(resolve, reject).finally(() => timer.cancel());
  });
}
