import type { Deadline } from '../../core/index.js';
import { TimeLimitError } from './time-limit.js';

/** Lets so many in at once, the others in the order in which they came. */
export class Permits {
  readonly #waiting = new Set<() => void>();

  constructor(private free: number) {}

  /** Rejects at the deadline, without a permit. */
  async take(deadline: Deadline): Promise<void> {
    if (this.free > 0) {
      this.free -= 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const timer = deadline.clock.schedule(deadline.remainingMs, () => {
        this.#waiting.delete(enter);
        reject(new TimeLimitError('the locks had no connection free'));
      });
      const enter = (): void => {
        timer.cancel();
        resolve();
      };
      this.#waiting.add(enter);
    });
  }

  give(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.free += 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
