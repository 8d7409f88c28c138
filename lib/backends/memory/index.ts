import { type BackendFactory, type Clock, LockBackend } from '../../core/index.js';
import { MemoryLeaseStore } from './lease-store.js';

export { MemoryLeaseStore };

/**
 * Locks inside this process only: for tests, and for an application that never runs twice. Each call creates a separate
 * store. Lock services share locks when they use the same result of this function.
 */
export function memory(options: { readonly clock?: Clock } = {}): BackendFactory {
  const store = new MemoryLeaseStore(options.clock);
  return () => new LockBackend(store);
}
