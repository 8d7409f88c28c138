import { AsyncResource } from 'node:async_hooks';

const emptyContext = new AsyncResource('DistributedLock');

/**
 * Runs `work` outside of all locks, in the async context in which the package was loaded. Every `AsyncLocalStorage` is
 * empty in that context if a program loads the package at its top.
 */
export function runDetached<T>(work: () => T): T {
  return emptyContext.runInAsyncScope(work);
}
