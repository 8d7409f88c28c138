import { errorText, type LockEvent } from '../core/index.js';
import { WINDOW_MS } from './contention.js';
import type { InspectedEvent } from './inspector-state.js';

const MAX_EVENTS = 200;
const TROUBLE_TYPES: ReadonlySet<string> = new Set([
  'timedOut',
  'lost',
  'jeopardy',
  'backendFailed',
  'evicted',
  'orderSuspect',
]);

/** Newest events of an application. Troubles have a list of their own, so that ordinary events do not displace them. */
export class EventHistory {
  readonly #ordinaryEvents: InspectedEvent[] = [];
  readonly #troubles: InspectedEvent[] = [];
  readonly #troubleListeners = new Set<(trouble: InspectedEvent) => void>();

  followTroubles(listener: (trouble: InspectedEvent) => void): () => void {
    this.#troubleListeners.add(listener);
    return () => this.#troubleListeners.delete(listener);
  }

  /** Adds an event. A trouble that equals the newest trouble replaces the newest one, and has a higher count. */
  addEvent(event: InspectedEvent): void {
    if (!TROUBLE_TYPES.has(event.type)) return appendEvent(this.#ordinaryEvents, event);
    const newestTrouble = this.#troubles.at(-1);
    const isRepeated = newestTrouble && isSameTrouble(newestTrouble, event);
    if (isRepeated) this.#troubles.pop();
    const trouble = isRepeated ? { ...event, times: newestTrouble.times + 1 } : event;
    appendEvent(this.#troubles, trouble);
    for (const listener of this.#troubleListeners) listener(trouble);
  }

  readEvents(nowMs: number): { readonly history: InspectedEvent[]; readonly troubles: InspectedEvent[] } {
    const windowStart = new Date(nowMs - WINDOW_MS).toISOString();
    const selectNewestFirst = (events: readonly InspectedEvent[]) =>
      events.filter(({ at }) => at >= windowStart).toReversed();
    return { history: selectNewestFirst(this.#ordinaryEvents), troubles: selectNewestFirst(this.#troubles) };
  }
}

function isSameTrouble(one: InspectedEvent, other: InspectedEvent): boolean {
  return (
    one.type === other.type &&
    one.backend === other.backend &&
    one.key === other.key &&
    one.detail === other.detail &&
    one.fencingToken === other.fencingToken
  );
}

function appendEvent(events: InspectedEvent[], event: InspectedEvent): void {
  events.push(event);
  if (events.length > MAX_EVENTS) events.shift();
}

/** @param key without the namespace */
export function createInspectedEvent(
  backend: string,
  key: string | undefined,
  event: LockEvent,
  at: Date,
): InspectedEvent {
  const detail = describeEvent(event);
  return {
    type: event.type,
    at: at.toISOString(),
    backend,
    ...(key === undefined ? {} : { key }),
    ...('fencingToken' in event ? { fencingToken: String(event.fencingToken) } : {}),
    ...(detail === undefined ? {} : { detail }),
    times: 1,
  };
}

function describeEvent(event: LockEvent): string | undefined {
  switch (event.type) {
    case 'waiting':
      return `${event.waitersHere} waiting here`;
    case 'acquired':
      return `${event.from}, after ${Math.round(event.waitedMs)} ms`;
    case 'released':
      return `after ${Math.round(event.heldMs)} ms`;
    case 'timedOut':
      return `after ${event.waitMs} ms${event.holder ? `, held by ${describeProcess(event.holder)}` : ''}`;
    case 'lost':
      return `${event.reason}, after ${Math.round(event.heldMs)} ms`;
    case 'jeopardy':
      return event.cause === undefined ? undefined : errorText(event.cause);
    case 'termEnded':
      return event.reason;
    case 'backendFailed':
      return `${event.operation}: ${errorText(event.error)}`;
    case 'orderSuspect':
      return event.orders.map(({ held, wanted }) => `${wanted} under ${held}`).join(', ');
    case 'healthChanged':
      return [event.status, event.detail].filter((text) => text !== undefined).join(': ');
    case 'safe':
    case 'termBegan':
    default:
      return undefined;
  }
}

/** Returns a name such as `api-1 (host:42)`. */
export function describeProcess({ label, host, pid }: { label?: string; host?: string; pid?: number }): string {
  const processName = host === undefined ? 'an unknown process' : `${host}:${pid}`;
  return label === undefined ? processName : `${label} (${processName})`;
}
