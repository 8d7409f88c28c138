import { type BackendFactory, type Clock, LockBackend } from '../../core/index.js';
import { MemoryLeaseStore } from './lease-store.js';

export { MemoryLeaseStore };

/**
 * Locks inside this process only: for tests, and for an application that will never run twice. Each call makes a world
 * of its own, which the lock services that it is given to share; nothing is shared between two of them.
 */
export function memory(options: { readonly clock?: Clock } = {}): BackendFactory {
  const store = new MemoryLeaseStore(options.clock);
  return () => new LockBackend(store);
}
