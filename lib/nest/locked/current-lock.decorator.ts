import type { LockHandle } from '../../core/index.js';
import { addParameterMetadata } from '../keys/parameter-metadata.js';

/**
 * Type `number` where the parameter can be a `LockHandle`; else a message, which the compiler prints. Also `number` for
 * private methods, whose names `keyof` leaves out.
 */
type TakesLock<Target, Name, Index extends number> = Name extends keyof Target
  ? Target[Name] extends (...args: infer Args) => unknown
    ? LockHandle extends Args[Index]
      ? number
      : 'this parameter must be a LockHandle, and optional'
    : number
  : number;

/**
 * Passes the `LockHandle` that `@Locked` took for this call; with several keys, the handle of the last one. Callers
 * leave the argument out, so declare it optional: `buy(id: string, @CurrentLock() lock?: LockHandle)`.
 */
export function CurrentLock() {
  return <Target extends object, Name extends string | symbol | undefined, Index extends number>(
    target: Target,
    method: Name,
    index: Index & TakesLock<Target, Name, Index>,
  ): void => {
    addParameterMetadata('@CurrentLock()', target, method, ({ lockPositions }) => ({
      lockPositions: new Set<number>(lockPositions).add(index),
    }));
  };
}
