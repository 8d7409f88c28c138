import { AbortListener } from '../kit/abort-listener.js';
import type { Deadline } from '../time/deadline.js';
import type { Timer } from '../time/timers.js';

/** What decides whether a lease fits the next caller. */
interface Wishes {
  readonly ttlMs: number;
  readonly lockDelayMs: number;
  readonly watchdog: boolean;
}

/** Whether the same request to the backend would do for the next caller. */
export function isAlike(next: Wishes | undefined, { ttlMs, lockDelayMs }: Wishes): boolean {
  return next?.ttlMs === ttlMs && next.lockDelayMs === lockDelayMs;
}

/** What the caller of a key leaves to the next one here when it gives up. */
export interface LinePlace {
  readonly owner: string;
}

type Request = Wishes & { readonly signal?: AbortSignal | undefined };

interface Outcome<Gift> {
  readonly resolve: (gift: Gift | null | 'late') => void;
  readonly reject: (reason: unknown) => void;
}

/** Gets the turn, alone or with what the one before left us, unless the deadline or the signal comes first. */
class Waiter<Gift> {
  readonly #timer: Timer;
  readonly #abortListener: AbortListener | undefined;

  constructor(
    readonly request: Request,
    deadline: Deadline,
    private readonly line: Set<Waiter<Gift>>,
    private readonly outcome: Outcome<Gift>,
  ) {
    this.#timer = deadline.clock.schedule(deadline.remainingMs, () => this.resolve('late'));
    const { signal } = request;
    if (signal) this.#abortListener = new AbortListener(signal, () => this.reject(signal.reason));
  }

  resolve(gift: Gift | null | 'late'): void {
    this.#leave();
    this.outcome.resolve(gift);
  }

  reject(reason: unknown): void {
    this.#leave();
    this.outcome.reject(reason);
  }

  #leave(): void {
    this.line.delete(this);
    this.#timer.cancel();
    this.#abortListener?.end();
  }
}

/**
 * First come, first served inside this process: for each key one caller at a time has the *turn*, which is the right to
 * talk to the backend about it. So a hot key costs the server one contender per process, however many callers there are.
 */
export class LocalQueue<Gift> {
  /**
   * A key is present while somebody has its turn, with a set once somebody waits. Sets keep the order of arrival and forget a
   * waiter in constant time.
   */
  readonly #turns = new Map<string, Set<Waiter<Gift>> | undefined>();
  #onIdle: (() => void)[] = [];

  get busy(): boolean {
    return this.#turns.size > 0;
  }

  /** Resolves when nobody has a turn, or waits for one. */
  async idle(): Promise<void> {
    while (this.busy) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  /** Whether the turn was free, and is now the caller's. */
  enter(key: string): boolean {
    if (this.#turns.has(key)) return false;
    this.#turns.set(key, undefined);
    return true;
  }

  waiting(key: string): number {
    return this.#turns.get(key)?.size ?? 0;
  }

  /**
   * Waits for a turn that `enter` refused. Resolves to the gift of the one before, to `null` for a bare turn, to `'late'`
   * when the deadline passed, and rejects with the signal's reason; in the last two cases the caller has no turn.
   */
  wait(key: string, request: Request, deadline: Deadline): Promise<Gift | null | 'late'> {
    return new Promise((resolve, reject) => {
      const line = this.#lineOf(key);
      line.add(new Waiter(request, deadline, line, { resolve, reject }));
    });
  }

  /** Who is next, so that the one who leaves can see whether its lease would fit. */
  next(key: string): Wishes | undefined {
    return this.#first(key)?.request;
  }

  /** Sends every waiter away. Those who have a turn keep it. */
  rejectAll(reason: unknown): void {
    for (const key of this.#turns.keys()) this.reject(key, reason);
  }

  /** Sends those away who wait for one key. */
  reject(key: string, reason: unknown): void {
    for (const waiter of this.#turns.get(key) ?? []) waiter.reject(reason);
  }

  /** Ends the caller's turn; the next waiter has it, with the gift. Without a waiter there must be no gift. Whether there was one. */
  leave(key: string, gift: Gift | null): boolean {
    const next = this.#first(key);
    if (next) {
      next.resolve(gift);
      return true;
    }
    this.#turns.delete(key);
    if (this.#onIdle.length > 0 && !this.busy) for (const resolve of this.#onIdle.splice(0)) resolve();
    return false;
  }

  #first(key: string): Waiter<Gift> | undefined {
    return this.#turns.get(key)?.values().next().value;
  }

  #lineOf(key: string): Set<Waiter<Gift>> {
    if (!this.#turns.has(key)) throw new Error('wait() comes after enter() refused the turn');
    const line = this.#turns.get(key) ?? new Set();
    this.#turns.set(key, line);
    return line;
  }
}
