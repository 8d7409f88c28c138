import { AsyncLocalStorage } from 'node:async_hooks';

const unloggedScope = new AsyncLocalStorage<true>();

/** Runs a statement that the application's logger must skip, on a connection that a holder writes through. */
export function runUnlogged<T>(statement: () => T): T {
  return unloggedScope.run(true, statement);
}

export function isUnlogged(): boolean {
  return unloggedScope.getStore() === true;
}
