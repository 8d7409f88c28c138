import 'reflect-metadata';
import { LockConfigurationError } from '../core/index.js';
import type { Declaration } from './method-metadata.js';

/** What our own parameter decorators say about a method. */
export interface ParameterNotes {
  /** `@LockKey('id')` */
  readonly keys: ReadonlyMap<string, number>;
  /** `@CurrentLock()` */
  readonly locks: ReadonlySet<number>;
}

const NOTES = Symbol('parameters that @Locked treats specially');
const NONE: ParameterNotes = { keys: new Map(), locks: new Set() };

/** Of the method that `target` itself declares: one that overrides it starts afresh. */
export function parameterNotes({ target, name }: Declaration): ParameterNotes {
  const notes: ParameterNotes | undefined = Reflect.getOwnMetadata(NOTES, target, name);
  return notes ?? NONE;
}

/** @throws LockConfigurationError where there is no method: the parameter is a constructor's */
export function addParameterNotes(
  decorator: string,
  target: object,
  name: string | symbol | undefined,
  add: (notes: ParameterNotes) => Partial<ParameterNotes>,
): void {
  if (name === undefined) throw new LockConfigurationError(`${decorator} belongs to a method's parameter`, decorator);
  const notes = parameterNotes({ target, name });
  Reflect.defineMetadata(NOTES, { ...notes, ...add(notes) }, target, name);
}
