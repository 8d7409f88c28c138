import type { LockEvent } from '../core/index.js';
import type { InspectedTemplate } from './inspector-state.js';

/** Maximum number of templates that are counted apart in a minute. Events of further ones count for `OTHER_TEMPLATES`. */
const MAX_TEMPLATES = 200;
const OTHER_TEMPLATES = '(others)';
const MINUTE_MS = 60_000;
const WINDOW_MINUTES = 5;
/** Age up to which events count for the figures and are in the history. */
export const WINDOW_MS = WINDOW_MINUTES * MINUTE_MS;

class EventCounts {
  acquired = 0;
  waitMs = 0;
  longestWaitMs = 0;
  released = 0;
  heldMs = 0;
  timedOut = 0;
  lost = 0;

  addEvent(event: LockEvent): void {
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

  addCounts(other: EventCounts): void {
    this.acquired += other.acquired;
    this.waitMs += other.waitMs;
    this.longestWaitMs = Math.max(this.longestWaitMs, other.longestWaitMs);
    this.released += other.released;
    this.heldMs += other.heldMs;
    this.timedOut += other.timedOut;
    this.lost += other.lost;
  }

  toInspectedTemplate(template: string): InspectedTemplate {
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

/** Counts of the events of this process in the last minutes, by key template: there are fewer templates than keys. */
export class Contention {
  readonly #minutes: { readonly minute: number; readonly countsByTemplate: Map<string, EventCounts> }[] = [];

  addEvent(template: string, event: LockEvent, nowMs: number): void {
    const countsByTemplate = this.#getCountsOfMinute(Math.floor(nowMs / MINUTE_MS));
    const name = countsByTemplate.has(template) || countsByTemplate.size < MAX_TEMPLATES ? template : OTHER_TEMPLATES;
    const counts = countsByTemplate.get(name) ?? new EventCounts();
    countsByTemplate.set(name, counts);
    counts.addEvent(event);
  }

  /** Returns the templates of the last minutes, the one with the longest total wait first. */
  listTemplates(nowMs: number): InspectedTemplate[] {
    this.#removeOldMinutes(Math.floor(nowMs / MINUTE_MS));
    const sums = new Map<string, EventCounts>();
    for (const { countsByTemplate } of this.#minutes) {
      for (const [template, counts] of countsByTemplate) {
        const sum = sums.get(template) ?? new EventCounts();
        sums.set(template, sum);
        sum.addCounts(counts);
      }
    }
    return [...sums]
      .toSorted(([, one], [, other]) => other.waitMs - one.waitMs || other.acquired - one.acquired)
      .map(([template, sum]) => sum.toInspectedTemplate(template));
  }

  #getCountsOfMinute(minute: number): Map<string, EventCounts> {
    const newest = this.#minutes.at(-1);
    if (newest?.minute === minute) return newest.countsByTemplate;
    this.#removeOldMinutes(minute);
    const countsByTemplate = new Map<string, EventCounts>();
    this.#minutes.push({ minute, countsByTemplate });
    return countsByTemplate;
  }

  #removeOldMinutes(minute: number): void {
    while (this.#minutes[0] && this.#minutes[0].minute <= minute - WINDOW_MINUTES) this.#minutes.shift();
  }
}
