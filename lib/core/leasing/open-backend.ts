import { LockConfigurationError } from '../contract/errors.js';
import type { LeaseStore } from '../contract/lease-store.js';
import { LockBackend } from './lock-backend.js';

/**
 * Opens a new backend with its own connections. `redis({ url })` and the like return such a function, which can be
 * given to several lock services.
 */
export type BackendFactory = () => LockBackend;

/**
 * Backend as a user passes it to a lock service. Each service opens its own backend from a factory such as
 * `redis({ url })`; an open backend or store is for one service. A store gets the defaults of `PollingOptions`.
 */
export type GivenBackend = LockBackend | LeaseStore | BackendFactory | (() => LeaseStore);

export function isGivenBackend(value: unknown): value is GivenBackend {
  return typeof value === 'function' || isLockBackend(value) || isLeaseStore(value);
}

/** Returns the backend for one lock service, and opens it if `source` is a factory. @throws LockConfigurationError */
export function openBackend(source: GivenBackend): LockBackend {
  const backend: unknown = typeof source === 'function' ? source() : source;
  if (isLockBackend(backend)) return backend;
  if (isLeaseStore(backend)) return new LockBackend(backend);
  const hint = typeof backend === 'function' ? ': call it once more, as in memory()' : '';
  throw new LockConfigurationError(
    `a lock service needs a LeaseStore, or a function that returns one; it was given ${describeSource(source)}, which gives ${describeSource(backend)}${hint}`,
    'backend',
  );
}

function isLockBackend(value: unknown): value is LockBackend {
  return typeof value === 'object' && value !== null && 'acquire' in value && typeof value.acquire === 'function';
}

function isLeaseStore(value: unknown): value is LeaseStore {
  return typeof value === 'object' && value !== null && 'tryAcquire' in value && typeof value.tryAcquire === 'function';
}

function describeSource(value: unknown): string {
  if (typeof value !== 'function') return value === null ? 'null' : `a value of type ${typeof value}`;
  return value.name === '' ? 'a function' : `the function ${value.name}`;
}
