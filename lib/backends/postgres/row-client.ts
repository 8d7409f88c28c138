import type { Client } from 'pg';
import { getHolderClient } from '../sql/connections/holder-client.js';

/**
 * Returns the connection whose transaction keeps the key's row locked, for a lock by `strategy: 'row'`. Writes through
 * `query` are committed when `withLock` or the `@Locked` method succeeds, before the lock is released. Any other end of
 * the lock undoes these writes. Do not end the transaction yourself. Call no method but `query`, without a callback.
 * @throws LockConfigurationError the lock is of another backend or strategy
 */
export function rowClient(lock: { readonly attachment?: unknown }): Client {
  // The attachment is a `Client` of `pg` that checks its calls: see `createHolderClient`.
  // eslint-disable-next-line typescript/no-unsafe-type-assertion
  return getHolderClient(lock, 'postgres') as Client;
}
