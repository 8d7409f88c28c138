import { assertKey, LockTimeoutError, refuseOption, shownOption } from '../../../core/index.js';
import { DEFAULT_FENCE_TABLE } from '../tables/lock-table.js';
import { checkTransaction, type SqlTransaction } from './sql-transaction.js';

export interface LockInOptions {
  /**
   * Milliseconds to wait while another transaction has the key. 0: not at all. MySQL and MariaDB count whole seconds,
   * and MySQL one at least. @default Infinity: as long as the database allows
   */
  waitMs?: number;
  /** On MySQL, MariaDB and SQLite the table whose rows are locked. @default 'distributed_lock_fence' */
  tableName?: string;
}

/**
 * Locks a key until the caller's own transaction ends, by commit or rollback. A caller that dies frees the key with its
 * connection. The key has no lease, no token, and no connection of the library's own, so `lockIn` works behind a pooler
 * in transaction mode. Call it first in the transaction, so that the transaction reads what the former holder has
 * committed. It excludes other calls of `lockIn` with the same key in the same database, and no lock of a
 * `LockService`.
 *
 * PostgreSQL: an advisory lock, without a table; the transaction must be READ COMMITTED. MySQL, MariaDB: the row of the
 * key in the fence table, which stays there. SQLite: the write lock of the file, whatever the key is.
 * A rollback to a savepoint ends a lock that was taken after the savepoint. The inner transactions of an ORM are
 * savepoints: take the lock outside of them.
 * @throws LockTimeoutError the key is still held: nothing was locked, and the transaction may go on.
 *   LockConfigurationError for an invalid key, outside of a transaction, and for an isolation level whose reads would
 *   miss what the former holder has committed. Errors of the database, such as `ER_LOCK_WAIT_TIMEOUT` where
 *   `innodb_rollback_on_timeout` ends the transaction with the wait
 */
export async function lockIn(
  tx: SqlTransaction,
  key: string,
  { waitMs = Infinity, tableName = DEFAULT_FENCE_TABLE }: LockInOptions = {},
): Promise<void> {
  assertKey(key);
  if (typeof waitMs !== 'number' || !(waitMs >= 0)) {
    refuseOption('waitMs', `must be a number of 0 or more; it was ${shownOption(waitMs)}`);
  }
  const { query, locks, table } = await checkTransaction('lockIn()', tx, tableName);
  if (!(await locks.lock(query, table, key, waitMs))) throw new LockTimeoutError(key, { waitMs });
}
