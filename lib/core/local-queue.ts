import { setMaxListeners } from 'node:events';
import type { Deadline } from './deadline.js';

/** What decides whether a lease fits the next caller. */
interface Wishes {
  readonly ttlMs: number;
  readonly lockDelayMs: number;
  readonly watchdog: boolean;
}

export interface Waiter<Gift> extends Wishes {
  /** Called once, with the turn: alone, or with what the one before left us. */
  readonly resolve: (gift: Gift | null) => void;
  readonly reject: (reason: unknown) => void;
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
  wait(
    key: string,
    request: Wishes & { readonly signal?: AbortSignal | undefined },
    deadline: Deadline,
  ): Promise<Gift | null | 'late'> {
    const { signal } = request;
    return new Promise((resolve, reject) => {
      const waiters = this.#waitersOf(key);
      const leave = (): void => {
        waiters.delete(waiter);
        timer.cancel();
        signal?.removeEventListener('abort', onAbort);
      };
      const onAbort = (): void => waiter.reject(signal?.reason);
      const timer = deadline.clock.schedule(deadline.remainingMs, () => {
        leave();
        resolve('late');
      });
      const waiter: Waiter<Gift> = {
        ttlMs: request.ttlMs,
        lockDelayMs: request.lockDelayMs,
        watchdog: request.watchdog,
        resolve: (gift) => {
          leave();
          resolve(gift);
        },
        reject: (reason) => {
          leave();
          reject(reason);
        },
      };
      // One signal may end thousands of waits, which Node would take for a leak from the eleventh on.
      if (signal) setMaxListeners(Infinity, signal);
      signal?.addEventListener('abort', onAbort);
      waiters.add(waiter);
    });
  }

  #waitersOf(key: string): Set<Waiter<Gift>> {
    if (!this.#turns.has(key)) throw new Error('wait() comes after enter() refused the turn');
    const waiters = this.#turns.get(key) ?? new Set();
    this.#turns.set(key, waiters);
    return waiters;
  }

  /** Who is next, so that the one who leaves can see whether its lease would fit. */
  next(key: string): Waiter<Gift> | undefined {
    return this.#turns.get(key)?.values().next().value;
  }

  /** Sends every waiter away. Those who have a turn keep it. */
  rejectAll(reason: unknown): void {
    for (const waiters of this.#turns.values()) for (const waiter of waiters ?? []) waiter.reject(reason);
  }

  /** Ends the caller's turn; the next waiter has it, with the gift. Without a waiter there must be no gift. */
  leave(key: string, gift: Gift | null): void {
    const next = this.next(key);
    if (next) next.resolve(gift);
    else this.#turns.delete(key);
  }
}
