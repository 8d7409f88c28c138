import type { LockEvent } from '../core/index.js';
import type { InspectedTemplate } from './inspector-state.js';

/** Templates of a minute; what comes later counts as one. */
const MOST_TEMPLATES = 200;
const OTHERS = '(others)';
const MINUTE_MS = 60_000;
const MINUTES = 5;
/** How far back the figures and the history reach. */
export const WINDOW_MS = MINUTES * MINUTE_MS;

class Counts {
  acquired = 0;
  waitMs = 0;
  longestWaitMs = 0;
  released = 0;
  heldMs = 0;
  timedOut = 0;
  lost = 0;

  add(event: LockEvent): void {
    if (event.type === 'timedOut') this.timedOut += 1;
    else if (event.type === 'lost') this.lost += 1;
    else if (event.type === 'released') {
      this.released += 1;
      this.heldMs += event.heldMs;
    } else if (event.type === 'acquired' && event.from !== 're-entry') {
      this.acquired += 1;
      this.waitMs += event.waitedMs;
      this.longestWaitMs = Math.max(this.longestWaitMs, event.waitedMs);
    }
  }

  addAll(other: Counts): void {
    this.acquired += other.acquired;
    this.waitMs += other.waitMs;
    this.longestWaitMs = Math.max(this.longestWaitMs, other.longestWaitMs);
    this.released += other.released;
    this.heldMs += other.heldMs;
    this.timedOut += other.timedOut;
    this.lost += other.lost;
  }

  of(template: string): InspectedTemplate {
    const { acquired, timedOut, lost } = this;
    return {
      template,
      acquired,
      meanWaitMs: Math.round(this.waitMs / Math.max(1, acquired)),
      longestWaitMs: Math.round(this.longestWaitMs),
      meanHoldMs: Math.round(this.heldMs / Math.max(1, this.released)),
      timedOut,
      lost,
    };
  }
}

/** What the callers of this process went through in the last minutes, by template: few names, however many keys. */
export class Contention {
  readonly #minutes: { readonly began: number; readonly counts: Map<string, Counts> }[] = [];

  add(template: string, event: LockEvent, now: number): void {
    const counts = this.#countsOf(Math.floor(now / MINUTE_MS));
    const name = counts.has(template) || counts.size < MOST_TEMPLATES ? template : OTHERS;
    const found = counts.get(name) ?? new Counts();
    counts.set(name, found);
    found.add(event);
  }

  /** Where callers waited longest comes first. */
  templates(now: number): InspectedTemplate[] {
    this.#forget(Math.floor(now / MINUTE_MS));
    const sums = new Map<string, Counts>();
    for (const { counts } of this.#minutes) {
      for (const [template, count] of counts) {
        const sum = sums.get(template) ?? new Counts();
        sums.set(template, sum);
        sum.addAll(count);
      }
    }
    return [...sums]
      .toSorted(([, one], [, other]) => other.waitMs - one.waitMs || other.acquired - one.acquired)
      .map(([template, sum]) => sum.of(template));
  }

  #countsOf(minute: number): Map<string, Counts> {
    const newest = this.#minutes.at(-1);
    if (newest?.began === minute) return newest.counts;
    this.#forget(minute);
    const counts = new Map<string, Counts>();
    this.#minutes.push({ began: minute, counts });
    return counts;
  }

  #forget(minute: number): void {
    while (this.#minutes[0] && this.#minutes[0].began <= minute - MINUTES) this.#minutes.shift();
  }
}
