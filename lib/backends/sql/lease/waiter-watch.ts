import { randomInt } from 'node:crypto';
import { systemClock, type Timer } from '../../../core/index.js';

/** Milliseconds between two checks for lost notifications, before the jitter is added or subtracted. */
const CONFIRM_INTERVAL_MS = 3_000;
const JITTER_MS = 500;

/** The waiters of this process. A check of all of them every few seconds finds lost notifications and dead holders. */
export class WaiterWatch {
  readonly #waitingOwners = new Set<string>();
  /** Keys of the waiters that the server has in line and notifies, by owner. */
  readonly keysInLine = new Map<string, string>();
  #timer: Timer | undefined;

  /** @param confirmWaiters called every few seconds while the server has waiters in line */
  constructor(private readonly confirmWaiters: () => void) {}

  get waiterCount(): number {
    return this.#waitingOwners.size;
  }

  /** Registers a waiter. The returned function removes it. */
  watch(owner: string): () => void {
    this.#waitingOwners.add(owner);
    this.#timer ??= this.#schedule();
    return () => {
      this.#waitingOwners.delete(owner);
      this.keysInLine.delete(owner);
      if (this.#waitingOwners.size > 0) return;
      this.#timer?.cancel();
      this.#timer = undefined;
    };
  }

  /** Records that the server has `owner` in line. */
  recordInLine(key: string, owner: string): void {
    if (this.#waitingOwners.has(owner)) this.keysInLine.set(owner, key);
  }

  #schedule(): Timer {
    const delayMs = CONFIRM_INTERVAL_MS - JITTER_MS + randomInt(2 * JITTER_MS);
    return systemClock.schedule(delayMs, () => {
      this.#timer = this.#schedule();
      this.confirmWaiters();
    });
  }
}
