import type { Connection } from 'mysql2/promise';
import { heldClientOf } from '../sql/connections/held-client.js';

/**
 * The connection whose transaction has the key's row, for a holder of strategy `row`. What is written through `query` and
 * `execute` is committed when `withLock` or the `@Locked` method succeeds, before the lock is given back, and undone with
 * everything else that ends the lock. Do not end the transaction yourself, run no DDL in it, which commits, and call
 * nothing but these two.
 * @throws LockConfigurationError the lock is of another backend or strategy
 */
export function rowClient(lock: { readonly attachment?: unknown }): Connection {
  // The attachment was made of a connection by `MysqlConnection`.
  // eslint-disable-next-line typescript/no-unsafe-type-assertion
  return heldClientOf(lock, 'mysql') as Connection;
}
