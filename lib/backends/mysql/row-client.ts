import type { Connection } from 'mysql2/promise';
import { getHolderClient } from '../sql/connections/holder-client.js';

/**
 * Returns the connection whose transaction has the key's row, for a holder of strategy `row`. Writes through `query`
 * and `execute` are committed when `withLock` or the `@Locked` method succeeds, before the lock is released. Any other
 * end of the lock undoes these writes. Do not end the transaction yourself, and run no DDL in it: DDL commits. Call no
 * method but `query` and `execute`.
 * @throws LockConfigurationError the lock is of another backend or strategy
 */
export function rowClient(lock: { readonly attachment?: unknown }): Connection {
  // The attachment was made of a connection by `MysqlConnection`.
  // eslint-disable-next-line typescript/no-unsafe-type-assertion
  return getHolderClient(lock, 'mysql') as Connection;
}
