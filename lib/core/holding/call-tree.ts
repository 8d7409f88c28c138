import { ownContext } from '../kit/own-context.js';
import type { Hold } from './hold.js';

/** Part of a `LockHandle` that the call tree reads. Each re-entry of a hold has its own handle. */
interface Handle {
  readonly state: string;
}

/** Lock that the call tree is inside of, linked with the lock around it. */
interface TreeEntry {
  readonly hold: Hold;
  readonly handle: Handle;
  outer: TreeEntry | undefined;
}

const entryStorage = ownContext<TreeEntry>('call-tree');

/** Runs `work` so that every call that `work` awaits or starts may re-enter the key of `hold`. */
export function runInsideLock<T>(hold: Hold, handle: Handle, work: () => T): T {
  return entryStorage.run({ hold, handle, outer: findOuterEntry(hold) }, work);
}

/** Runs `work` inside several locks, the last of them innermost, by one call: there may be thousands. */
export function runInsideLocks<T>(locks: readonly Omit<TreeEntry, 'outer'>[], work: () => T): T {
  let entry = entryStorage.getStore();
  for (const { hold, handle } of locks) entry = { hold, handle, outer: entry?.hold.hasEnded ? entry.outer : entry };
  return entryStorage.run(entry, work);
}

/**
 * Returns the outer entry for a new entry of `hold`. Removes entries of ended holds, and skips released innermost
 * entries of `hold`. A task that starts itself again inside its lock would otherwise keep all its former locks in
 * memory.
 */
function findOuterEntry(hold: Hold): TreeEntry | undefined {
  let outer = entryStorage.getStore();
  while (outer && (outer.hold.hasEnded || (outer.hold === hold && outer.handle.state === 'released')))
    outer = outer.outer;
  for (let entry = outer; entry; entry = entry.outer) {
    while (entry.outer?.hold.hasEnded === true) entry.outer = entry.outer.outer;
  }
  return outer;
}

/**
 * Runs `work` in a call tree that has no lock. Shared objects such as connections, batches and timers are created this
 * way, because their callbacks would otherwise run inside the lock of the first caller.
 */
export function runOutsideLocks<T>(work: () => T): T {
  return entryStorage.getStore() === undefined ? work() : entryStorage.run(undefined, work);
}

export function currentEntry(): TreeEntry | undefined {
  return entryStorage.getStore();
}

/** Returns the holds that the current call tree has not released, innermost first, each once. */
export function currentHolds(): Hold[] {
  const holds = new Set<Hold>();
  for (let entry = entryStorage.getStore(); entry; entry = entry.outer)
    if (entry.handle.state !== 'released') holds.add(entry.hold);
  return [...holds];
}

/** Returns the hold that the current call tree is inside of: who started the tree there has not left, or not all have. */
export function findOwnHold(isWanted: (hold: Hold) => boolean): Hold | undefined {
  for (let entry = entryStorage.getStore(); entry; entry = entry.outer)
    if (!entry.hold.hasEnded && entry.handle.state !== 'released' && isWanted(entry.hold)) return entry.hold;
  return undefined;
}

export function currentHandles(): Handle[] {
  const handles: Handle[] = [];
  for (let entry = entryStorage.getStore(); entry; entry = entry.outer) handles.push(entry.handle);
  return handles;
}
