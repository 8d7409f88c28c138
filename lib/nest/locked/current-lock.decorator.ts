import type { LockHandle } from '../../core/index.js';
import { addParameterMetadata } from '../keys/parameter-metadata.js';

/** Whether the parameter takes a `LockHandle`. Private methods are not checked. */
type TakesLock<Target, Name, Index extends number> = Name extends keyof Target
  ? Target[Name] extends (...args: infer Args) => unknown
    ? LockHandle extends Args[Index]
      ? number
      : 'this parameter must be a LockHandle, and optional'
    : number
  : number;

/**
 * The `LockHandle` that `@Locked` took for this call; with several keys the last of them. Callers leave the argument
 * out, so declare it optional: `buy(id: string, @CurrentLock() lock?: LockHandle)`.
 */
export function CurrentLock() {
  return <Target extends object, Name extends string | symbol | undefined, Index extends number>(
    target: Target,
    method: Name,
    index: Index & TakesLock<Target, Name, Index>,
  ): void => {
    addParameterMetadata('@CurrentLock()', target, method, ({ locks }) => ({
      locks: new Set<number>(locks).add(index),
    }));
  };
}
