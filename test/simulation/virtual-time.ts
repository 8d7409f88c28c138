import type { Clock, Timer } from 'nestjs-distributed-lock/core';
import type { Random } from '../support/random.js';

interface Task {
  readonly run: () => void;
  readonly process: VirtualProcess | undefined;
  cancelled: boolean;
}

interface Entry {
  readonly time: number;
  readonly order: number;
  readonly task: Task;
}

/** More than this at one instant means that time stands still. */
const MOST_AT_ONE_INSTANT = 5_000;

/** The world's time, and everything that is going to happen in it. */
export class VirtualTime {
  now = 0;
  #sequence = 0;
  /** Sorted by time, then by order, with the next one last. */
  readonly #entries: Entry[] = [];

  constructor(
    private readonly random: Random,
    private readonly afterInstant: () => void,
  ) {}

  /** When something is still going to happen. */
  get left(): number[] {
    return this.#entries.filter(({ task }) => !task.cancelled).map(({ time }) => time);
  }

  at(time: number, run: () => void, process?: VirtualProcess): () => void {
    this.#sequence += 1;
    const task = { run, process, cancelled: false };
    this.#insert({ time: Math.max(time, this.now), order: this.#sequence, task });
    return () => void (task.cancelled = true);
  }

  /** Lets everything happen up to `end`. Whatever awaits it settles in between. @throws when time stands still */
  async runUntil(end: number): Promise<void> {
    let atThisInstant = 0;
    for (;;) {
      const next = this.#next(this.now);
      if (next) {
        if (this.#isFrozen(next)) continue;
        atThisInstant += 1;
        if (atThisInstant > MOST_AT_ONE_INSTANT) throw new Error(`time stands still at ${this.now}`);
        next.task.run();
        await microtasks();
        continue;
      }
      await settle();
      this.afterInstant();
      const following = this.#entries.at(-1)?.time ?? Infinity;
      if (following <= this.now) continue;
      atThisInstant = 0;
      this.now = Math.min(following, end);
      if (following > end) return;
    }
  }

  /** A frozen process finds all at once when it goes on: its timers and its answers, in any order. */
  #isFrozen({ task }: Entry): boolean {
    const until = task.process?.frozenUntil ?? 0;
    if (until <= this.now) return false;
    this.#insert({ time: until, order: this.random.below(this.#sequence), task });
    return true;
  }

  #next(end: number): Entry | undefined {
    for (let next = this.#entries.at(-1); next && next.time <= end; next = this.#entries.at(-1)) {
      this.#entries.pop();
      if (!next.task.cancelled) return next;
    }
    return undefined;
  }

  #insert(entry: Entry): void {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#entries[middle];
      if (other && (other.time > entry.time || (other.time === entry.time && other.order > entry.order))) {
        low = middle + 1;
      } else high = middle;
    }
    this.#entries.splice(low, 0, entry);
  }
}

/** A process with a clock of its own, whose event loop may stand still. */
export class VirtualProcess {
  frozenUntil = 0;
  readonly #freezes: { readonly from: number; readonly to: number }[] = [];
  readonly #offset: number;
  readonly clock: Clock;

  constructor(
    readonly name: string,
    private readonly time: VirtualTime,
    /** How many of its milliseconds pass in one of the world's. */
    readonly rate: number,
    random: Random,
  ) {
    this.#offset = random.below(1_000_000);
    this.clock = {
      now: () => this.#offset + time.now * rate,
      schedule: (delayMs, callback) => this.#schedule(delayMs, callback),
    };
  }

  freeze(ms: number): void {
    const to = this.time.now + ms;
    if (to <= this.frozenUntil) return;
    this.#freezes.push({ from: Math.max(this.time.now, this.frozenUntil), to });
    this.frozenUntil = to;
  }

  /** For how long it stood still since `from`, in the world's time. */
  frozenSince(from: number): number {
    return this.#freezes.reduce((sum, freeze) => sum + Math.max(0, freeze.to - Math.max(from, freeze.from)), 0);
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#schedule(ms, resolve));
  }

  #schedule(delayMs: number, callback: () => void): Timer {
    if (delayMs === Infinity) return { cancel: () => undefined };
    return { cancel: this.time.at(this.time.now + Math.max(0, delayMs) / this.rate, callback, this) };
  }
}

/** Microtasks only: what waits for the next turn of the event loop does not run yet. */
function microtasks(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

function settle(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
