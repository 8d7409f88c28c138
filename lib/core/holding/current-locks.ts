import { LockHandle } from './lock-handle.js';
import { handlesAround } from './reentrancy.js';

/** The handles of the current call tree, innermost first. */
export function currentLocks(): LockHandle[] {
  return handlesAround().filter((handle) => handle instanceof LockHandle);
}

/** The innermost lock that the current call tree was run under, or `undefined` outside of one. */
export function currentLock(): LockHandle | undefined {
  return currentLocks()[0];
}
