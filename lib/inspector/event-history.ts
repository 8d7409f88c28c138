import { errorText, type LockEvent } from '../core/index.js';
import { WINDOW_MS } from './contention.js';
import type { InspectedEvent } from './inspector-state.js';

const MOST_EVENTS = 200;
const TROUBLES: ReadonlySet<string> = new Set([
  'timedOut',
  'lost',
  'jeopardy',
  'backendFailed',
  'evicted',
  'orderSuspect',
]);

/** The newest events of this process. Troubles are kept apart, so that busy keys do not push them out. */
export class EventHistory {
  readonly #ordinary: InspectedEvent[] = [];
  readonly #troubles: InspectedEvent[] = [];
  readonly #followers = new Set<(trouble: InspectedEvent) => void>();

  /** Calls `follower` for each trouble from now on; what it returns stops that. */
  follow(follower: (trouble: InspectedEvent) => void): () => void {
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }

  add(event: InspectedEvent): void {
    if (!TROUBLES.has(event.type)) return keep(this.#ordinary, event);
    const last = this.#troubles.at(-1);
    const again = last && isAlike(last, event);
    if (again) this.#troubles.pop();
    const trouble = again ? { ...event, times: last.times + 1 } : event;
    keep(this.#troubles, trouble);
    for (const follower of this.#followers) follower(trouble);
  }

  /** The newest first. */
  read(now: number): { readonly history: InspectedEvent[]; readonly troubles: InspectedEvent[] } {
    const since = new Date(now - WINDOW_MS).toISOString();
    const newest = (events: readonly InspectedEvent[]) => events.filter(({ at }) => at >= since).toReversed();
    return { history: newest(this.#ordinary), troubles: newest(this.#troubles) };
  }
}

/** A server that is down fails again and again. */
function isAlike(one: InspectedEvent, other: InspectedEvent): boolean {
  return (
    one.type === other.type &&
    one.backend === other.backend &&
    one.key === other.key &&
    one.detail === other.detail &&
    one.fencingToken === other.fencingToken
  );
}

function keep(events: InspectedEvent[], event: InspectedEvent): void {
  events.push(event);
  if (events.length > MOST_EVENTS) events.shift();
}

/** @param key without the namespace */
export function inspected(backend: string, key: string | undefined, event: LockEvent, at: Date): InspectedEvent {
  const detail = detailOf(event);
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

function detailOf(event: LockEvent): string | undefined {
  switch (event.type) {
    case 'waiting':
      return `${event.waitersHere} waiting here`;
    case 'acquired':
      return `${event.from}, after ${Math.round(event.waitedMs)} ms`;
    case 'released':
      return `after ${Math.round(event.heldMs)} ms`;
    case 'timedOut':
      return `after ${event.waitMs} ms${event.holder ? `, held by ${nameOf(event.holder)}` : ''}`;
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

/** Such as `api-1 (host:42)`. */
export function nameOf({ label, host, pid }: { label?: string; host?: string; pid?: number }): string {
  const process = host === undefined ? 'an unknown process' : `${host}:${pid}`;
  return label === undefined ? process : `${label} (${process})`;
}
