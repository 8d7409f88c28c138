import { Inject } from '@nestjs/common';
import { LockService } from '../core/index.js';

/** The name of a module's only backend. */
export const DEFAULT_BACKEND = 'default';

/** The token of the `LockService` of a backend: the class itself for the default one. */
export function getLockServiceToken(backend = DEFAULT_BACKEND): typeof LockService | string {
  return backend === DEFAULT_BACKEND ? LockService : `LockService(${backend})`;
}

/** Injects the `LockService` of one of several backends. The default one needs no decorator. */
export function InjectLockService(backend?: string): ParameterDecorator & PropertyDecorator {
  return Inject(getLockServiceToken(backend));
}

/** Token of a module's `NamedLockServices`, in all copies of this package. */
export const LOCK_SERVICES = Symbol.for('nestjs-distributed-lock/services');

/** Lock services of a module, by the names of their backends. */
export interface NamedLockServices {
  get(backend: string): LockService | undefined;
  /** @throws LockConfigurationError a backend can never work */
  start(): Promise<void>;
}
