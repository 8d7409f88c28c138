import 'reflect-metadata';
import { LockConfigurationError } from '../../core/index.js';
import type { Declaration } from '../../decorators/declaration.js';

/** The parameters of a method that have a decorator of this library, by position. */
export interface ParameterMetadata {
  readonly keys: ReadonlyMap<string, number>;
  readonly locks: ReadonlySet<number>;
}

const PARAMETERS = Symbol.for('nestjs-distributed-lock/parameters of @Locked');
const NONE: ParameterMetadata = { keys: new Map(), locks: new Set() };

/** Concerns the method that `target` itself declares. One that overrides it starts afresh. */
export function parameterMetadata({ target, name }: Declaration): ParameterMetadata {
  const found: ParameterMetadata | undefined = Reflect.getOwnMetadata(PARAMETERS, target, name);
  return found ?? NONE;
}

/** @throws LockConfigurationError the parameter is a constructor's */
export function addParameterMetadata(
  decorator: string,
  target: object,
  name: string | symbol | undefined,
  add: (present: ParameterMetadata) => Partial<ParameterMetadata>,
): void {
  if (name === undefined) throw new LockConfigurationError(`${decorator} belongs to a method's parameter`, decorator);
  const present = parameterMetadata({ target, name });
  Reflect.defineMetadata(PARAMETERS, { ...present, ...add(present) }, target, name);
}
