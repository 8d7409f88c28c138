import { AsyncResource } from 'node:async_hooks';

const emptyContext = new AsyncResource('DistributedLock');

/** Runs `work` in an empty async context: outside of all locks, and of every other `AsyncLocalStorage`. */
export function runDetached<T>(work: () => T): T {
  return emptyContext.runInAsyncScope(work);
}
