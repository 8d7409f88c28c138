import 'reflect-metadata';
import { LockConfigurationError } from '../../core/index.js';
import type { Declaration } from '../../decorators/declaration.js';

export interface ParameterMetadata {
  /** Positions of parameters with `@LockKey`, by the name for the key. */
  readonly keyPositions: ReadonlyMap<string, number>;
  /** Positions of parameters with `@CurrentLock`. */
  readonly lockPositions: ReadonlySet<number>;
}

const METADATA_KEY = Symbol.for('nestjs-distributed-lock/parameters of @Locked');
const NO_METADATA: ParameterMetadata = { keyPositions: new Map(), lockPositions: new Set() };

/** Reads only what `target` itself declares: a method that overrides another one inherits no metadata. */
export function getParameterMetadata({ target, name }: Declaration): ParameterMetadata {
  const metadata: ParameterMetadata | undefined = Reflect.getOwnMetadata(METADATA_KEY, target, name);
  return metadata ?? NO_METADATA;
}

/** @throws LockConfigurationError when the parameter is a constructor's */
export function addParameterMetadata(
  decorator: string,
  target: object,
  name: string | symbol | undefined,
  createChanges: (existing: ParameterMetadata) => Partial<ParameterMetadata>,
): void {
  if (name === undefined) throw new LockConfigurationError(`${decorator} belongs to a method's parameter`, decorator);
  const existing = getParameterMetadata({ target, name });
  Reflect.defineMetadata(METADATA_KEY, { ...existing, ...createChanges(existing) }, target, name);
}
