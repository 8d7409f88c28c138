import { type Clock, type LockBackend, PollingBackend } from '../../core/index.js';
import { MemoryLeaseStore } from './memory-lease-store.js';

export { MemoryLeaseStore };

/**
 * Locks inside this process only: for tests, and for an application that will never run twice. Each call makes a world of its
 * own; nothing is shared between two of them.
 */
export function memory(options: { readonly clock?: Clock } = {}): LockBackend {
  return new PollingBackend(new MemoryLeaseStore(options.clock));
}
