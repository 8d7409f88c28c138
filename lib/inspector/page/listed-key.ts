import type { InspectedKey, InspectorState } from '../inspector-state.js';
import { getBackendPrefix } from './texts.js';

/** A key of one backend, for the table of all backends. */
export interface ListedKey extends InspectedKey {
  readonly backend: string;
  /** Text before the key that names its backend; empty if there is only one backend. */
  readonly prefix: string;
}

const { compare } = new Intl.Collator(undefined, { numeric: true });

/** Comparison functions by the value of the element `sort`. Keys that compare equal are sorted by name. */
const ORDERS: Readonly<Record<string, (a: ListedKey, b: ListedKey) => number>> = {
  waiting: (a, b) => countWaiters(b) - countWaiters(a),
  since: (a, b) => (getHoldStart(a) ?? Infinity) - (getHoldStart(b) ?? Infinity),
};

/** Returns the keys of all backends that contain `search`, in the order that `order` names, and then by key. */
export function listKeys(state: InspectorState, search: string, order: string): ListedKey[] {
  return state.backends
    .flatMap(({ name, keys }) => keys.map((key) => ({ ...key, backend: name, prefix: getBackendPrefix(state, name) })))
    .filter(({ key }) => key.includes(search))
    .toSorted((a, b) => ORDERS[order]?.(a, b) || compare(a.key, b.key));
}

/** Returns the number of waiters that the server lists or the answering process counts, whichever is greater. */
export function countWaiters({ waiters, here }: InspectedKey): number {
  return Math.max(waiters.length, here?.waitersHere ?? 0);
}

/** Returns the milliseconds for which the key has been held at `now`; `undefined` if unknown. */
export function measureHold(key: InspectedKey, now: string): number | undefined {
  const start = getHoldStart(key);
  return start === undefined ? key.here?.heldMs : Math.max(0, Date.parse(now) - start);
}

function getHoldStart({ holder }: InspectedKey): number | undefined {
  return holder?.since === undefined ? undefined : Date.parse(holder.since);
}
