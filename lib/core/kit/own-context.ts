import { AsyncLocalStorage } from 'node:async_hooks';
import { sharedState } from './shared-state.js';

interface OwnContext {
  run<T>(entry: undefined, work: () => T): T;
}

const ownContexts = sharedState('own-contexts', () => new Set<OwnContext>());

/** Returns the context that all copies of this package in the process share under `name`: `runDetached` leaves it. */
export function ownContext<Entry>(name: string): AsyncLocalStorage<Entry | undefined> {
  return sharedState(name, () => {
    const context = new AsyncLocalStorage<Entry | undefined>();
    ownContexts.add(context);
    return context;
  });
}

/**
 * Starts work that belongs to no lock, request or fenced transaction of its caller. Such work is a job of a queue, an
 * event, a timer or a batch that only happens to start there. Contexts of the application stay as they are. Do not await the work under
 * a lock whose key it wants.
 */
export function runDetached<T>(work: () => T): T {
  const leaveAll = [...ownContexts].reduce<() => T>((inner, context) => () => context.run(undefined, inner), work);
  return leaveAll();
}
