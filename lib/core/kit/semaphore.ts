import { AbortListener } from '../time/abort-listener.js';
import { Deadline } from '../time/deadline.js';

/** Options of a wait for a semaphore. */
export interface SemaphoreWait {
  /** Returns the deadline. It is called again when the deadline has come, which may have moved. */
  readonly deadline?: () => Deadline;
  /** Whether the caller goes before callers that are not in a hurry. */
  readonly inHurry?: boolean;
  /** Signal that ends the wait. It must not be aborted yet. */
  readonly signal?: AbortSignal;
}

const never = (): Deadline => Deadline.after(Infinity);

/** Lets a number of callers in at a time, in order of arrival, callers in a hurry first. */
export class Semaphore {
  readonly #hurried = new Set<() => void>();
  readonly #patient = new Set<() => void>();

  constructor(private free: number) {}

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (!this.enterAtOnce()) await this.#wait({});
    try {
      return await task();
    } finally {
      this.leave();
    }
  }

  enterAtOnce(): boolean {
    if (this.free === 0) return false;
    this.free -= 1;
    return true;
  }

  /** Resolves to whether the caller got in before its deadline, and before its signal aborted. */
  async enter(wait: SemaphoreWait = {}): Promise<boolean> {
    return this.enterAtOnce() || this.#wait(wait);
  }

  leave(): void {
    const lane = this.#hurried.size > 0 ? this.#hurried : this.#patient;
    const [next] = lane;
    if (!next) {
      this.free += 1;
      return;
    }
    lane.delete(next);
    next();
  }

  #wait({ deadline = never, inHurry = false, signal }: SemaphoreWait): Promise<boolean> {
    const lane = inHurry ? this.#hurried : this.#patient;
    return new Promise((resolve) => {
      const wait = () => {
        const { clock, remainingMs } = deadline();
        return clock.schedule(remainingMs, onTime);
      };
      const end = (isIn: boolean): void => {
        timer.cancel();
        listener?.end();
        lane.delete(enter);
        resolve(isIn);
      };
      const onTime = (): void => {
        if (deadline().passed) end(false);
        else timer = wait();
      };
      const enter = (): void => end(true);
      let timer = wait();
      const listener = signal && new AbortListener(signal, () => end(false));
      lane.add(enter);
    });
  }
}
