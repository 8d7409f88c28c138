import { Inject } from '@nestjs/common';
import { LockService } from '../core/index.js';

export const DEFAULT_BACKEND = 'default';

/** Returns the token of a backend's `LockService`: the class itself for the default backend. */
export function getLockServiceToken(backend = DEFAULT_BACKEND): typeof LockService | string {
  return backend === DEFAULT_BACKEND ? LockService : `LockService(${backend})`;
}

/** Injects the `LockService` of one of several backends. The service of the default backend needs no decorator. */
export function InjectLockService(backend?: string): ParameterDecorator & PropertyDecorator {
  return Inject(getLockServiceToken(backend));
}

/** Token of a module's `NamedLockServices`. All copies of this package share the token. */
export const LOCK_SERVICES = Symbol.for('nestjs-distributed-lock/services');

export interface NamedLockServices {
  get(backend: string): LockService | undefined;
  /** @throws LockConfigurationError when a backend can never work */
  start(): Promise<void>;
}
