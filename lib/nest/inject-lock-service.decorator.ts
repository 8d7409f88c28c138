import { Inject } from '@nestjs/common';
import { LockService } from '../core/index.js';

/** What a module's only backend is called. */
export const DEFAULT_BACKEND = 'default';

/** What the `LockService` of a backend is provided under: the class itself for the default one. */
export function getLockServiceToken(backend = DEFAULT_BACKEND): typeof LockService | string {
  return backend === DEFAULT_BACKEND ? LockService : `LockService(${backend})`;
}

/** Injects the `LockService` of one of several backends. The default one needs no decorator. */
export function InjectLockService(backend?: string): ParameterDecorator & PropertyDecorator {
  return Inject(getLockServiceToken(backend));
}
