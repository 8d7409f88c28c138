import { AbortListener } from '../time/abort-listener.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import type { Deadline } from '../time/deadline.js';
import type { Timer } from '../time/timers.js';

/** Result of a wait: `null` is a turn without anything that the previous caller hands over. */
type Outcome<Handover> = Handover | null | 'timed-out';

/** Caller that waits for its turn, at most until its deadline or until its signal aborts. */
export class Waiter<Handover> {
  readonly #timer: Timer;
  readonly #abortListener: AbortListener | undefined;

  constructor(
    readonly options: ResolvedOptions,
    deadline: Deadline,
    private readonly waiters: Set<Waiter<Handover>>,
    private readonly onResolved: (outcome: Outcome<Handover>) => void,
    private readonly onRejected: (reason: unknown) => void,
  ) {
    this.#timer = deadline.clock.schedule(deadline.remainingMs, () => this.resolve('timed-out'));
    const { signal } = options;
    if (signal) this.#abortListener = new AbortListener(signal, () => this.reject(signal.reason));
  }

  resolve(outcome: Outcome<Handover>): void {
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
