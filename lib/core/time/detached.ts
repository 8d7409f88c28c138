import { AsyncResource } from 'node:async_hooks';

const emptyContext = new AsyncResource('DistributedLock');

/**
 * Runs `work` outside of all locks, in the async context in which the package was loaded. At the top of a program every
 * `AsyncLocalStorage` is empty.
 */
export function runDetached<T>(work: () => T): T {
  return emptyContext.runInAsyncScope(work);
}
