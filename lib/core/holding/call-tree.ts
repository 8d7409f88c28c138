import { AsyncLocalStorage } from 'node:async_hooks';
import { sharedState } from '../kit/shared-state.js';
import type { Hold } from './hold.js';

/** A `LockHandle`, as far as a call tree looks at one. */
interface Handle {
  readonly state: string;
}

/** A hold that a call tree has, seen from inside. */
interface Entry {
  readonly hold: Hold;
  readonly handle: Handle;
  outer: Entry | undefined;
}

const entries = sharedState('call-tree', () => new AsyncLocalStorage<Entry | undefined>());

/** Runs `work` as part of the call tree that has `hold`: what it awaits or starts may re-enter the key. */
export function runInside<T>(hold: Hold, handle: Handle, work: () => T): T {
  return entries.run({ hold, handle, outer: outerOf(hold) }, work);
}

/**
 * The entry around a new one, without those that are over. A task that starts itself anew from inside its lock would
 * else drag along all its former locks for ever.
 */
function outerOf(hold: Hold): Entry | undefined {
  let outer = entries.getStore();
  while (outer && (outer.hold.ended || (outer.hold === hold && outer.handle.state === 'released'))) outer = outer.outer;
  for (let entry = outer; entry; entry = entry.outer) {
    while (entry.outer?.hold.ended === true) entry.outer = entry.outer.outer;
  }
  return outer;
}

/**
 * Runs `work` as a call tree that has no lock. What many share is begun in here, such as a connection, a batch or a
 * timer: else all that it ever calls back would run inside the lock of whoever happened to be the first.
 */
export function runOutsideLocks<T>(work: () => T): T {
  return entries.run(undefined, work);
}

/** The innermost hold of the current call tree, with those around it. */
export function currentEntry(): Entry | undefined {
  return entries.getStore();
}

/** The holds of the current call tree, innermost first. One that was re-entered comes once. */
export function currentHolds(): Hold[] {
  const holds = new Set<Hold>();
  for (let entry = entries.getStore(); entry; entry = entry.outer) holds.add(entry.hold);
  return [...holds];
}

/** The handles of the current call tree, innermost first. */
export function currentHandles(): Handle[] {
  const handles: Handle[] = [];
  for (let entry = entries.getStore(); entry; entry = entry.outer) handles.push(entry.handle);
  return handles;
}
