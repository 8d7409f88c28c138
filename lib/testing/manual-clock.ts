import type { Clock, Timer } from '../core/index.js';

interface Pending {
  readonly due: number;
  readonly callback: () => void;
}

/** Taken before a test framework may replace it by a fake. */
const nextTurn = setImmediate;

/** Time that stands still until a test moves it. Give it to the lock service and to the backend alike. */
export class ManualClock implements Clock {
  #now = 0;
  readonly #pending = new Set<Pending>();

  now(): number {
    return this.#now;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    const pending: Pending = { due: this.#now + Math.max(0, delayMs), callback };
    if (delayMs !== Infinity) this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  /** Moves time on and runs what falls due, each thing at its time; promises settle in between. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (let next = this.#next(end); next; next = this.#next(end)) {
      this.#now = Math.max(this.#now, next.due);
      this.#pending.delete(next);
      next.callback();
      await settle();
    }
    this.#now = end;
  }

  /** Moves time on and runs nothing: what a blocked event loop or a stopped process sees when it wakes up. */
  stall(ms: number): void {
    this.#now += ms;
  }

  #next(end: number): Pending | undefined {
    let first: Pending | undefined;
    for (const pending of this.#pending) {
      if (pending.due <= end && (!first || pending.due < first.due)) first = pending;
    }
    return first;
  }
}

function settle(): Promise<void> {
  return new Promise((resolve) => void nextTurn(resolve));
}
