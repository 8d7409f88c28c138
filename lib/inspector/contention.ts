import type { LockEvent } from '../core/index.js';
import type { InspectedTemplate } from './inspector-state.js';

/** Maximum number of templates with counts of their own in a minute. The rest share the counts of `(others)`. */
const MAX_TEMPLATES = 200;
const OTHER_TEMPLATES = '(others)';
const MINUTE_MS = 60_000;
const WINDOW_MINUTES = 5;
/** Maximum age of the events that the figures count and the history shows. */
export const WINDOW_MS = WINDOW_MINUTES * MINUTE_MS;

class EventCounts {
  acquired = 0;
  totalWaitMs = 0;
  longestWaitMs = 0;
  released = 0;
  totalHeldMs = 0;
  timedOut = 0;
  lost = 0;

  addEvent(event: LockEvent): void {
    if (event.type === 'timedOut') this.timedOut += 1;
    else if (event.type === 'lost') this.lost += 1;
    else if (event.type === 'released') {
      this.released += 1;
      this.totalHeldMs += event.heldMs;
    } else if (event.type === 'acquired' && event.from !== 're-entry') {
      this.acquired += 1;
      this.totalWaitMs += event.waitedMs;
      this.longestWaitMs = Math.max(this.longestWaitMs, event.waitedMs);
    }
  }

  addCounts(other: EventCounts): void {
    this.acquired += other.acquired;
    this.totalWaitMs += other.totalWaitMs;
    this.longestWaitMs = Math.max(this.longestWaitMs, other.longestWaitMs);
    this.released += other.released;
    this.totalHeldMs += other.totalHeldMs;
    this.timedOut += other.timedOut;
    this.lost += other.lost;
  }

  toInspectedTemplate(template: string): InspectedTemplate {
    const { acquired, timedOut, lost } = this;
    return {
      template,
      acquired,
      meanWaitMs: Math.round(this.totalWaitMs / Math.max(1, acquired)),
      longestWaitMs: Math.round(this.longestWaitMs),
      meanHoldMs: Math.round(this.totalHeldMs / Math.max(1, this.released)),
      timedOut,
      lost,
    };
  }
}

export class ContentionStatistics {
  readonly #minutes: { readonly minute: number; readonly countsByTemplate: Map<string, EventCounts> }[] = [];

  addEvent(template: string, event: LockEvent, nowMs: number): void {
    const countsByTemplate = this.#getOrCreateCounts(Math.floor(nowMs / MINUTE_MS));
    const name = countsByTemplate.has(template) || countsByTemplate.size < MAX_TEMPLATES ? template : OTHER_TEMPLATES;
    const counts = countsByTemplate.get(name) ?? new EventCounts();
    countsByTemplate.set(name, counts);
    counts.addEvent(event);
  }

  listTemplates(nowMs: number): InspectedTemplate[] {
    this.#removeOldMinutes(Math.floor(nowMs / MINUTE_MS));
    const totalsByTemplate = new Map<string, EventCounts>();
    for (const { countsByTemplate } of this.#minutes) {
      for (const [template, counts] of countsByTemplate) {
        const totals = totalsByTemplate.get(template) ?? new EventCounts();
        totalsByTemplate.set(template, totals);
        totals.addCounts(counts);
      }
    }
    return [...totalsByTemplate]
      .toSorted(([, one], [, other]) => other.totalWaitMs - one.totalWaitMs || other.acquired - one.acquired)
      .map(([template, totals]) => totals.toInspectedTemplate(template));
  }

  #getOrCreateCounts(minute: number): Map<string, EventCounts> {
    const newestMinute = this.#minutes.at(-1);
    if (newestMinute?.minute === minute) return newestMinute.countsByTemplate;
    this.#removeOldMinutes(minute);
    const countsByTemplate = new Map<string, EventCounts>();
    this.#minutes.push({ minute, countsByTemplate });
    return countsByTemplate;
  }

  #removeOldMinutes(minute: number): void {
    while (this.#minutes[0] && this.#minutes[0].minute <= minute - WINDOW_MINUTES) this.#minutes.shift();
  }
}
