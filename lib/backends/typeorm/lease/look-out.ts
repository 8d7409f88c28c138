import { randomInt } from 'node:crypto';
import { systemClock, type Timer } from '../../../core/index.js';

/** How long somebody may wait until it is looked whether a message was lost, give or take half a second. */
const LOOK_MS = 3_000;
const JITTER_MS = 500;

interface Waiting {
  readonly key: string;
  /** The server knows of it, and would tell it. */
  inLine: boolean;
}

/** Those who wait to be told, and a look after all of them every few seconds: any message may be lost, and so may be the sender. */
export class LookOut {
  readonly #waiting = new Map<string, Waiting>();
  #timer: Timer | undefined;

  /** @param look is called when somebody has waited for some seconds */
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

  /** It waits from now on, until what this returns is called. */
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

  /** It relies on being told. */
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
