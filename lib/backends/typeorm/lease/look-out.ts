import { randomInt } from 'node:crypto';
import { systemClock, type Timer } from '../../../core/index.js';

/** The pause between two looks for lost notifications, give or take half a second. */
const LOOK_MS = 3_000;
const JITTER_MS = 500;

interface Waiting {
  readonly key: string;
  /** The server has it in line, and notifies it. */
  inLine: boolean;
}

/**
 * The waiters of this process. A look after all of them every few seconds finds lost notifications and dead holders.
 */
export class LookOut {
  readonly #waiting = new Map<string, Waiting>();
  #timer: Timer | undefined;

  /** @param look called every few seconds while there are waiters */
  constructor(private readonly look: () => void) {}

  get size(): number {
    return this.#waiting.size;
  }

  has(owner: string): boolean {
    return this.#waiting.has(owner);
  }

  /** The keys of those in line, by owner. */
  get line(): ReadonlyMap<string, string> {
    const line = new Map<string, string>();
    for (const [owner, { key, inLine }] of this.#waiting) if (inLine) line.set(owner, key);
    return line;
  }

  /** Registers a waiter. The returned function removes it. */
  watch(key: string, owner: string): () => void {
    this.#waiting.set(owner, { key, inLine: false });
    this.#timer ??= this.#schedule();
    return () => {
      this.#waiting.delete(owner);
      if (this.#waiting.size > 0) return;
      this.#timer?.cancel();
      this.#timer = undefined;
    };
  }

  /** The server has `owner` in line. */
  joined(owner: string): void {
    const waiting = this.#waiting.get(owner);
    if (waiting) waiting.inLine = true;
  }

  #schedule(): Timer {
    const delayMs = LOOK_MS - JITTER_MS + randomInt(2 * JITTER_MS);
    return systemClock.schedule(delayMs, () => {
      this.#timer = this.#schedule();
      this.look();
    });
  }
}
