import { isLockError, LockConfigurationError } from '../contract/errors.js';
import type { LeaseStore } from '../contract/lease-store.js';
import { LockBackend } from './lock-backend.js';

/**
 * Opens a backend with connections of its own. `redis({ url })` and the other backends return such a function, so that
 * one setting serves any number of lock services.
 */
export type BackendFactory = () => LockBackend;

/**
 * Backend as a user gives it. With a factory such as `redis({ url })` each service opens a backend of its own; a live
 * backend or store is for one service. A store has the defaults of `PollingOptions`.
 */
export type GivenBackend = LockBackend | LeaseStore | BackendFactory | (() => LeaseStore);

/** Returns whether `value` can be given to a lock service. */
export function isBackend(value: unknown): value is GivenBackend {
  return typeof value === 'function' || isOpen(value) || isStore(value);
}

/** Returns the backend of one lock service: a factory opens it, a live one is taken as it is. @throws LockConfigurationError */
export function openBackend(given: GivenBackend): LockBackend {
  const backend: unknown = typeof given === 'function' ? given() : given;
  if (isOpen(backend)) return backend;
  if (isStore(backend)) return new LockBackend(backend);
  const hint = typeof backend === 'function' ? ': call it once more, as in memory()' : '';
  throw new LockConfigurationError(
    `a lock service needs a LeaseStore, or a function that returns one; it was given ${describe(given)}, which gives ${describe(backend)}${hint}`,
    'backend',
  );
}

/**
 * Has the store look for what can never work. A server that cannot be reached is told to `onFailure`.
 * @throws LockConfigurationError
 */
export async function startBackend({ store }: LockBackend, onFailure: (error: unknown) => void): Promise<void> {
  try {
    await store.start?.();
  } catch (error) {
    if (isLockError(error, 'LOCK_CONFIGURATION')) throw error;
    onFailure(error);
  }
}

function isOpen(value: unknown): value is LockBackend {
  return typeof value === 'object' && value !== null && 'acquire' in value && typeof value.acquire === 'function';
}

function isStore(value: unknown): value is LeaseStore {
  return typeof value === 'object' && value !== null && 'tryAcquire' in value && typeof value.tryAcquire === 'function';
}

function describe(value: unknown): string {
  if (typeof value !== 'function') return value === null ? 'null' : `a value of type ${typeof value}`;
  return value.name === '' ? 'a function' : `the function ${value.name}`;
}
