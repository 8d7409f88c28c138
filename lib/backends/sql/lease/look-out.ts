import { randomInt } from 'node:crypto';
import { systemClock, type Timer } from '../../../core/index.js';

/** The pause between two looks for lost notifications, give or take half a second. */
const LOOK_MS = 3_000;
const JITTER_MS = 500;

/** The waiters of this process. A look after all of them every few seconds finds lost notifications and dead holders. */
export class LookOut {
  readonly #owners = new Set<string>();
  /** The keys of those whom the server has in line, and notifies; by owner. */
  readonly line = new Map<string, string>();
  #timer: Timer | undefined;

  /** @param look called every few seconds while there are waiters */
  constructor(private readonly look: () => void) {}

  get size(): number {
    return this.#owners.size;
  }

  /** Registers a waiter. The returned function removes it. */
  watch(owner: string): () => void {
    this.#owners.add(owner);
    this.#timer ??= this.#schedule();
    return () => {
      this.#owners.delete(owner);
      this.line.delete(owner);
      if (this.#owners.size > 0) return;
      this.#timer?.cancel();
      this.#timer = undefined;
    };
  }

  /** The server has `owner` in line. */
  joined(key: string, owner: string): void {
    if (this.#owners.has(owner)) this.line.set(owner, key);
  }

  #schedule(): Timer {
    const delayMs = LOOK_MS - JITTER_MS + randomInt(2 * JITTER_MS);
    return systemClock.schedule(delayMs, () => {
      this.#timer = this.#schedule();
      this.look();
    });
  }
}
