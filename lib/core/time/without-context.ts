import { AsyncResource } from 'node:async_hooks';

const emptyContext = new AsyncResource('DistributedLock');

/**
 * Runs `work` outside of all locks, in the async context in which the package was loaded. If a program imports the
 * package at the top level of a module, every `AsyncLocalStorage` is empty in that context.
 */
export function runWithoutContext<T>(work: () => T): T {
  return emptyContext.runInAsyncScope(work);
}
