import { AsyncLocalStorage } from 'node:async_hooks';

const unloggedScope = new AsyncLocalStorage<true>();

/** Runs a statement of the locks on a holder's connection, so that the application's logger skips it. */
export function runUnlogged<T>(statement: () => T): T {
  return unloggedScope.run(true, statement);
}

export function isUnlogged(): boolean {
  return unloggedScope.getStore() === true;
}
