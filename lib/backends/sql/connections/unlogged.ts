import { AsyncLocalStorage } from 'node:async_hooks';

const unlogged = new AsyncLocalStorage<true>();

/** Runs a statement of the locks on a connection that a holder writes through. The application's logger must skip it. */
export function runUnlogged<T>(statement: () => T): T {
  return unlogged.run(true, statement);
}

/** Returns whether `runUnlogged` runs the present statement. */
export function isUnlogged(): boolean {
  return unlogged.getStore() === true;
}
