import { AsyncLocalStorage } from 'node:async_hooks';

const unloggedScope = new AsyncLocalStorage<true>();

/** Runs a statement of the locks on a connection that a holder writes through. The application's logger must skip it. */
export function runUnlogged<T>(statement: () => T): T {
  return unloggedScope.run(true, statement);
}

/** Returns whether `runUnlogged` runs the current statement. */
export function isUnlogged(): boolean {
  return unloggedScope.getStore() === true;
}
