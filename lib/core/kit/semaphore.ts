import { AbortListener } from '../time/abort-listener.js';
import { Deadline } from '../time/deadline.js';
import { scheduleReplyTimeout } from '../time/reply-timeout.js';

/** Options of a wait for a semaphore. */
export interface SemaphoreWait {
  /** Returns the deadline. Called again when the deadline passes, because it may have become later. */
  readonly deadline?: () => Deadline;
  /** Whether the caller gets in before all callers without this option. */
  readonly inHurry?: boolean;
  /** Signal that ends the wait, and that must not be aborted yet. */
  readonly signal?: AbortSignal;
}

const createEndlessDeadline = (): Deadline => Deadline.after(Infinity);

/** Lets a limited number of callers in at a time, in order of arrival, but callers in a hurry first. */
export class Semaphore {
  readonly #urgentWaiters = new Set<() => void>();
  readonly #patientWaiters = new Set<() => void>();

  constructor(private freePlaces: number) {}

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (!this.enterAtOnce()) await this.#waitForPlace({});
    try {
      return await task();
    } finally {
      this.leave();
    }
  }

  enterAtOnce(): boolean {
    if (this.freePlaces === 0) return false;
    this.freePlaces -= 1;
    return true;
  }

  /** Resolves to whether the caller got in before its deadline, and before its signal aborted. */
  async enter(wait: SemaphoreWait = {}): Promise<boolean> {
    return this.enterAtOnce() || this.#waitForPlace(wait);
  }

  leave(): void {
    const waiters = this.#urgentWaiters.size > 0 ? this.#urgentWaiters : this.#patientWaiters;
    const [next] = waiters;
    if (!next) {
      this.freePlaces += 1;
      return;
    }
    waiters.delete(next);
    next();
  }

  #waitForPlace({ deadline = createEndlessDeadline, inHurry = false, signal }: SemaphoreWait): Promise<boolean> {
    const waiters = inHurry ? this.#urgentWaiters : this.#patientWaiters;
    return new Promise((resolve) => {
      const startTimer = () => {
        const { clock, remainingMs } = deadline();
        return scheduleReplyTimeout(clock, remainingMs, onTimer);
      };
      const end = (hasEntered: boolean): void => {
        timer.cancel();
        listener?.end();
        waiters.delete(enter);
        resolve(hasEntered);
      };
      const onTimer = (): void => {
        if (deadline().passed) end(false);
        else timer = startTimer();
      };
      const enter = (): void => end(true);
      let timer = startTimer();
      const listener = signal && new AbortListener(signal, () => end(false));
      waiters.add(enter);
    });
  }
}
