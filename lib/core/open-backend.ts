import { LockConfigurationError } from './errors.js';
import type { BackendFactory, LockBackend } from './lock-backend.js';

/** Whether `value` can be given to a lock service. */
export function isBackend(value: unknown): value is LockBackend | BackendFactory {
  return typeof value === 'function' || isOpen(value);
}

/**
 * A backend for one lock service: a factory makes it, a live one is taken as it is.
 * @throws LockConfigurationError
 */
export function openBackend(given: LockBackend | BackendFactory): LockBackend {
  const backend: unknown = typeof given === 'function' ? given() : given;
  if (isOpen(backend)) return backend;
  const hint = typeof backend === 'function' ? ': call it once more, as in memory()' : '';
  throw new LockConfigurationError(
    `a lock service needs a LockBackend, or a function that returns one; it was given ${describe(given)}, which gives ${describe(backend)}${hint}`,
    'backend',
  );
}

function isOpen(value: unknown): value is LockBackend {
  return typeof value === 'object' && value !== null && 'acquire' in value && typeof value.acquire === 'function';
}

function describe(value: unknown): string {
  if (typeof value !== 'function') return value === null ? 'null' : `a value of type ${typeof value}`;
  return value.name === '' ? 'a function' : `the function ${value.name}`;
}
