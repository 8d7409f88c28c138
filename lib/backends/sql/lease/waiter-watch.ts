import { randomInt } from 'node:crypto';
import { systemClock, type Timer } from '../../../core/index.js';

const CONFIRM_INTERVAL_MS = 3_000;
const JITTER_MS = 500;

/**
 * Timer that calls `confirmWaiters` every few seconds while callers wait. The confirmation finds lost notifications and
 * dead holders.
 */
export class WaiterWatch {
  readonly #waitingOwners = new Set<string>();
  /** Keys for which the server keeps a waiter of this process in its queue, by owner. */
  readonly queuedKeyByOwner = new Map<string, string>();
  #timer: Timer | undefined;

  constructor(private readonly confirmWaiters: () => void) {}

  get waiterCount(): number {
    return this.#waitingOwners.size;
  }

  /** Returns a function that removes the waiter. */
  addWaiter(owner: string): () => void {
    this.#waitingOwners.add(owner);
    this.#timer ??= this.#schedule();
    return () => {
      this.#waitingOwners.delete(owner);
      this.queuedKeyByOwner.delete(owner);
      if (this.#waitingOwners.size > 0) return;
      this.#timer?.cancel();
      this.#timer = undefined;
    };
  }

  recordInLine(key: string, owner: string): void {
    if (this.#waitingOwners.has(owner)) this.queuedKeyByOwner.set(owner, key);
  }

  #schedule(): Timer {
    const delayMs = CONFIRM_INTERVAL_MS - JITTER_MS + randomInt(2 * JITTER_MS);
    return systemClock.schedule(delayMs, () => {
      this.#timer = this.#schedule();
      this.confirmWaiters();
    });
  }
}
