import { AsyncResource } from 'node:async_hooks';

const nowhere = new AsyncResource('DistributedLock');

/** Runs `work` in nobody's call tree: outside of every lock, and of every other `AsyncLocalStorage` too. */
export function detached<T>(work: () => T): T {
  return nowhere.runInAsyncScope(work);
}
