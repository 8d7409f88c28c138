import type { Connection } from 'mysql2/promise';
import { getHolderClient } from '../sql/connections/holder-client.js';

/**
 * Returns the connection whose transaction has the key's row, for a holder of strategy `row`. Writes through `query`
 * and `execute` are committed when `withLock` or the `@Locked` method succeeds, before the lock is released. Everything
 * else that ends the lock undoes them. Do not end the transaction yourself, run no DDL in it, which commits, and call
 * nothing but these two.
 * @throws LockConfigurationError the lock is of another backend or strategy
 */
export function rowClient(lock: { readonly attachment?: unknown }): Connection {
  // The attachment was made of a connection by `MysqlConnection`.
  // eslint-disable-next-line typescript/no-unsafe-type-assertion
  return getHolderClient(lock, 'mysql') as Connection;
}
