import type { Deadline } from '../../core/index.js';
import { TimeLimitError } from './time-limit.js';

/** Lets so many in at once, the others in the order in which they came: first those in a hurry. */
export class Permits {
  readonly #hurried = new Set<() => void>();
  readonly #patient = new Set<() => void>();

  constructor(private free: number) {}

  /** Rejects at the deadline, without a permit. The deadline is asked for again when it has come: it may have moved. */
  async take(deadline: () => Deadline, { inHurry = false }: { readonly inHurry?: boolean } = {}): Promise<void> {
    if (this.free > 0) {
      this.free -= 1;
      return;
    }
    const lane = inHurry ? this.#hurried : this.#patient;
    await new Promise<void>((resolve, reject) => {
      const wait = () => {
        const { clock, remainingMs } = deadline();
        return clock.schedule(remainingMs, onTime);
      };
      const onTime = (): void => {
        if (!deadline().passed) {
          timer = wait();
          return;
        }
        lane.delete(enter);
        reject(new TimeLimitError('the locks had no connection free'));
      };
      const enter = (): void => {
        timer.cancel();
        resolve();
      };
      let timer = wait();
      lane.add(enter);
    });
  }

  give(): void {
    const lane = this.#hurried.size > 0 ? this.#hurried : this.#patient;
    const [next] = lane;
    if (!next) {
      this.free += 1;
      return;
    }
    lane.delete(next);
    next();
  }
}
