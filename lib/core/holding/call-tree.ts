import { AsyncLocalStorage } from 'node:async_hooks';
import { sharedState } from '../kit/shared-state.js';
import type { Hold } from './hold.js';

/** Part of `LockHandle` that a call tree needs. */
interface Handle {
  readonly state: string;
}

/** Hold that a call tree has, with the entries around it. */
interface Entry {
  readonly hold: Hold;
  readonly handle: Handle;
  outer: Entry | undefined;
}

const entries = sharedState('call-tree', () => new AsyncLocalStorage<Entry | undefined>());

/** Runs `work` in a call tree that has `hold`: calls that it awaits or starts may re-enter the key. */
export function runInside<T>(hold: Hold, handle: Handle, work: () => T): T {
  return entries.run({ hold, handle, outer: outerOf(hold) }, work);
}

/**
 * Returns the entry around a new one, and drops entries that are over. A task that starts itself anew inside its lock
 * would otherwise keep all its former locks in memory.
 */
function outerOf(hold: Hold): Entry | undefined {
  let outer = entries.getStore();
  while (outer && (outer.hold.hasEnded || (outer.hold === hold && outer.handle.state === 'released')))
    outer = outer.outer;
  for (let entry = outer; entry; entry = entry.outer) {
    while (entry.outer?.hold.hasEnded === true) entry.outer = entry.outer.outer;
  }
  return outer;
}

/**
 * Runs `work` in a call tree that has no lock. Shared things such as connections, batches and timers are begun in here:
 * their callbacks would otherwise run inside the lock of the first caller.
 */
export function runOutsideLocks<T>(work: () => T): T {
  return entries.getStore() === undefined ? work() : entries.run(undefined, work);
}

/** Returns the innermost entry of the current call tree. */
export function currentEntry(): Entry | undefined {
  return entries.getStore();
}

/** Returns the holds of the current call tree, innermost first. A hold that was re-entered comes once. */
export function currentHolds(): Hold[] {
  const holds = new Set<Hold>();
  for (let entry = entries.getStore(); entry; entry = entry.outer) holds.add(entry.hold);
  return [...holds];
}

/** Returns the handles of the current call tree, innermost first. */
export function currentHandles(): Handle[] {
  const handles: Handle[] = [];
  for (let entry = entries.getStore(); entry; entry = entry.outer) handles.push(entry.handle);
  return handles;
}
