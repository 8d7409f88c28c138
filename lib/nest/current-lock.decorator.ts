import { addParameterNotes } from './parameter-notes.js';

/**
 * The `LockHandle` that `@Locked` took for this call; with several keys the last of them. Whoever calls the method leaves
 * the argument out, so declare it optional: `buy(id: string, @CurrentLock() lock?: LockHandle)`.
 */
export function CurrentLock(): ParameterDecorator {
  return (target, method, index) => {
    addParameterNotes('@CurrentLock()', target, method, ({ locks }) => ({ locks: new Set(locks).add(index) }));
  };
}
