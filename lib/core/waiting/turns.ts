import { AbortListener } from '../kit/abort-listener.js';
import type { ResolvedOptions } from '../lock-options.js';
import type { Deadline } from '../time/deadline.js';
import type { Timer } from '../time/timers.js';

/** Gets the turn, alone or with what the one before hands on, unless the deadline or the signal comes first. */
export class Waiter<Handed> {
  readonly #timer: Timer;
  readonly #abortListener: AbortListener | undefined;

  constructor(
    readonly options: ResolvedOptions,
    deadline: Deadline,
    private readonly line: Set<Waiter<Handed>>,
    private readonly onTurn: (handed: Handed | null | 'timed-out') => void,
    private readonly onRejected: (reason: unknown) => void,
  ) {
    this.#timer = deadline.clock.schedule(deadline.remainingMs, () => this.resolve('timed-out'));
    const { signal } = options;
    if (signal) this.#abortListener = new AbortListener(signal, () => this.reject(signal.reason));
  }

  resolve(handed: Handed | null | 'timed-out'): void {
    this.#leave();
    this.onTurn(handed);
  }

  reject(reason: unknown): void {
    this.#leave();
    this.onRejected(reason);
  }

  #leave(): void {
    this.line.delete(this);
    this.#timer.cancel();
    this.#abortListener?.end();
  }
}

/** The turns of one slot that are taken, and those who wait for one. A set keeps its order, and forgets in constant time. */
export class Turns<Handed> {
  readonly line = new Set<Waiter<Handed>>();
  taken = 1;
  /** Of these, the ones that keep nobody from a turn: see `LocalQueue.share`. */
  shared = 0;

  get first(): Waiter<Handed> | undefined {
    return this.line.values().next().value;
  }
}
