import { AbortListener } from '../time/abort-listener.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import type { Deadline } from '../time/deadline.js';
import type { Timer } from '../time/timers.js';

/** Caller that waits for its turn, at most until its deadline or until its signal aborts. */
export class Waiter<Handover> {
  readonly #timer: Timer;
  readonly #abortListener: AbortListener | undefined;

  constructor(
    readonly options: ResolvedOptions,
    deadline: Deadline,
    private readonly waiters: Set<Waiter<Handover>>,
    private readonly onResolved: (outcome: Handover | null | 'timed-out') => void,
    private readonly onRejected: (reason: unknown) => void,
  ) {
    this.#timer = deadline.clock.schedule(deadline.remainingMs, () => this.resolve('timed-out'));
    const { signal } = options;
    if (signal) this.#abortListener = new AbortListener(signal, () => this.reject(signal.reason));
  }

  resolve(outcome: Handover | null | 'timed-out'): void {
    this.#leave();
    this.onResolved(outcome);
  }

  reject(reason: unknown): void {
    this.#leave();
    this.onRejected(reason);
  }

  #leave(): void {
    this.waiters.delete(this);
    this.#timer.cancel();
    this.#abortListener?.end();
  }
}
