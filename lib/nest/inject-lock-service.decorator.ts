import { Inject } from '@nestjs/common';
import { LockService } from '../core/index.js';

/** Name of a module's only backend. */
export const DEFAULT_BACKEND = 'default';

/** Returns the token of a backend's `LockService`: the class itself for the default backend. */
export function getLockServiceToken(backend = DEFAULT_BACKEND): typeof LockService | string {
  return backend === DEFAULT_BACKEND ? LockService : `LockService(${backend})`;
}

/** Injects the `LockService` of one of several backends. The service of the default backend needs no decorator. */
export function InjectLockService(backend?: string): ParameterDecorator & PropertyDecorator {
  return Inject(getLockServiceToken(backend));
}

/** Token of a module's `NamedLockServices`, the same in all copies of this package. */
export const LOCK_SERVICES = Symbol.for('nestjs-distributed-lock/services');

/** Lock services of a module, by the names of their backends. */
export interface NamedLockServices {
  get(backend: string): LockService | undefined;
  /** @throws LockConfigurationError when a backend can never work */
  start(): Promise<void>;
}
