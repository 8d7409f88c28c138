import { assertKey } from '../../../core/index.js';
import { DEFAULT_FENCE_TABLE } from '../tables/lock-table.js';
import { assertToken, type Fencing, raiseFence } from './raise-fence.js';
import { checkTransaction, type SqlTransaction } from './sql-transaction.js';

export interface FenceOptions {
  /** `schema.name` is in another schema than that of the connection. @default 'distributed_lock_fence' */
  tableName?: string;
}

/** Source that all calls of `fence` share, so that they warn of stale reads once in a process. */
const WARNING_SOURCE = {};

/**
 * Raises the fence of a resource to the lock's token, in a transaction that the application has begun. A former holder
 * who does not know yet that it lost the lock is refused, and its transaction must end. This makes a lock of any
 * backend safe. Call it before the transaction's first read and write.
 *
 * A lock that is not exclusive raises nothing. It is refused when an exclusive holder with a newer token has raised the
 * fence. Holders who share a key never refuse each other.
 *
 * The fence's row stays locked until the transaction ends. `tableStatements` returns the statements that create the
 * table.
 * @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
 * @throws StaleFenceError a newer token was seen: roll the transaction back. LockConfigurationError for a resource that
 *   is no valid key, for a value that is no lock, and outside of a transaction. Errors of the database
 */
export async function fence(
  tx: SqlTransaction,
  resource: string,
  lock: Fencing,
  { tableName = DEFAULT_FENCE_TABLE }: FenceOptions = {},
): Promise<void> {
  assertKey(resource);
  assertToken('fence()', lock);
  const { query, fence: statements, table } = await checkTransaction('fence()', tx, tableName);
  await raiseFence({ query, statements, table, isJoined: true, source: WARNING_SOURCE }, resource, lock);
}
