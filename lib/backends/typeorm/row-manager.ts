import { EntityManager } from 'typeorm';
import { LockConfigurationError } from '../../core/index.js';

/**
 * Returns the `EntityManager` of the transaction that locks the key's row, for a lock of strategy `row`. Its writes are
 * committed when `withLock` or the `@Locked` method succeeds, before the lock is released. Everything else that ends
 * the lock undoes the writes. Do not end the transaction yourself. On MySQL and MariaDB, run no DDL in it: DDL commits.
 * @throws LockConfigurationError when the lock is of another backend or strategy
 */
export function rowManager(lock: { readonly attachment?: unknown }): EntityManager {
  if (lock.attachment instanceof EntityManager) return lock.attachment;
  throw new LockConfigurationError("only locks of typeorm({ strategy: 'row' }) have an EntityManager", 'strategy');
}
