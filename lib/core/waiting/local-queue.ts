import { AbortListener } from '../kit/abort-listener.js';
import { WaitGroup } from '../kit/wait-group.js';
import type { Deadline } from '../time/deadline.js';
import type { ResolvedOptions } from '../lock-options.js';
import type { Timer } from '../time/timers.js';

/** Whether the same request to the backend would do for the next caller. */
export function isAlike(
  next: ResolvedOptions | undefined,
  { ttlMs, lockDelayMs, minHoldMs }: ResolvedOptions,
): boolean {
  return next?.ttlMs === ttlMs && next.lockDelayMs === lockDelayMs && next.minHoldMs === minHoldMs;
}

/** The queue entry that a caller leaves to the next one here when it gives up. */
export interface LeftEntry {
  readonly owner: string;
}

/** Gets the turn, alone or with what the one before hands on, unless the deadline or the signal comes first. */
class Waiter<Handed> {
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

/**
 * First come, first served inside this process: for each key one caller at a time has the *turn*, which is the right to
 * talk to the backend about it. So a hot key costs the server one contender per process, however many callers there
 * are.
 */
export class LocalQueue<Handed> {
  /** The keys whose turn somebody has, with those who wait. Sets keep their order, and forget one in constant time. */
  readonly #turns = new Map<string, Set<Waiter<Handed>> | undefined>();
  readonly #taken = new WaitGroup();

  /** Whether anybody has a turn, or waits for one. */
  get busy(): boolean {
    return this.#turns.size > 0;
  }

  /** Resolves when nobody has a turn, or waits for one. */
  idle(): Promise<void> {
    return this.#taken.idle();
  }

  /** Whether the turn was free, and is now the caller's. */
  enter(key: string): boolean {
    if (this.#turns.has(key)) return false;
    this.#turns.set(key, undefined);
    this.#taken.begin();
    return true;
  }

  waiting(key: string): number {
    return this.#turns.get(key)?.size ?? 0;
  }

  /**
   * Waits for a turn that `enter` refused. Resolves to what the one before hands on, to `null` for a bare turn, to
   * `'timed-out'` when the deadline passed, and rejects with the signal's reason; in the last two cases the caller has
   * no turn.
   */
  wait(key: string, options: ResolvedOptions, deadline: Deadline): Promise<Handed | null | 'timed-out'> {
    return new Promise((resolve, reject) => {
      const line = this.#lineOf(key);
      line.add(new Waiter(options, deadline, line, resolve, reject));
    });
  }

  /** Who is next, so that the one who leaves can see whether its lease would fit. */
  next(key: string): ResolvedOptions | undefined {
    return this.#first(key)?.options;
  }

  /** Sends every waiter away. Those who have a turn keep it. */
  rejectAll(reason: unknown): void {
    for (const key of this.#turns.keys()) this.reject(key, reason);
  }

  /** Sends those away who wait for one key. */
  reject(key: string, reason: unknown): void {
    for (const waiter of this.#turns.get(key) ?? []) waiter.reject(reason);
  }

  /** Ends the caller's turn. Whether a waiter has it now, with `handed`; where nobody waits, that must be `null`. */
  endTurn(key: string, handed: Handed | null): boolean {
    const next = this.#first(key);
    if (next) {
      next.resolve(handed);
      return true;
    }
    this.#turns.delete(key);
    this.#taken.end();
    return false;
  }

  #first(key: string): Waiter<Handed> | undefined {
    return this.#turns.get(key)?.values().next().value;
  }

  #lineOf(key: string): Set<Waiter<Handed>> {
    if (!this.#turns.has(key)) throw new Error('wait() comes after enter() refused the turn');
    const line = this.#turns.get(key) ?? new Set();
    this.#turns.set(key, line);
    return line;
  }
}
