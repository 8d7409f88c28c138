import 'reflect-metadata';
import { LockConfigurationError } from '../core/index.js';
import type { Declaration } from './method-metadata.js';

/** What our own parameter decorators say about a method. */
export interface ParameterMetadata {
  /** `@LockKey('id')` */
  readonly keys: ReadonlyMap<string, number>;
  /** `@CurrentLock()` */
  readonly locks: ReadonlySet<number>;
}

const NOTES = Symbol('parameters that @Locked treats specially');
const NONE: ParameterMetadata = { keys: new Map(), locks: new Set() };

/** Of the method that `target` itself declares: one that overrides it starts afresh. */
export function parameterMetadata({ target, name }: Declaration): ParameterMetadata {
  const notes: ParameterMetadata | undefined = Reflect.getOwnMetadata(NOTES, target, name);
  return notes ?? NONE;
}

/** @throws LockConfigurationError where there is no method: the parameter is a constructor's */
export function addParameterMetadata(
  decorator: string,
  target: object,
  name: string | symbol | undefined,
  add: (notes: ParameterMetadata) => Partial<ParameterMetadata>,
): void {
  if (name === undefined) throw new LockConfigurationError(`${decorator} belongs to a method's parameter`, decorator);
  const notes = parameterMetadata({ target, name });
  Reflect.defineMetadata(NOTES, { ...notes, ...add(notes) }, target, name);
}
