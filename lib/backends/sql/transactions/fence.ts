import { assertKey } from '../../../core/index.js';
import { DEFAULT_FENCE_TABLE } from '../tables/lock-table.js';
import { assertToken, type Fencing, raiseFence } from './raise-fence.js';
import { checkTransaction, type SqlTransaction } from './sql-transaction.js';

export interface FenceOptions {
  /** `schema.name` is in another schema than that of the connection. @default 'distributed_lock_fence' */
  tableName?: string;
}

/** Source of warnings of stale reads: there is one warning in a process. */
const WARNING_SOURCE = {};

/**
 * Raises the fence of a resource to the lock's token, in a transaction that the application has begun. A former holder of
 * the lock, who was paused and does not know yet that it lost it, is refused, and its transaction must end. This makes a
 * lock of any backend safe. Call it before the transaction's first read and write.
 *
 * A lock that is not exclusive raises nothing: it is refused when somebody with a newer token who had the key exclusively
 * has been here. Those who share a key never refuse each other.
 *
 * The fence's row stays locked until the transaction ends. `tableStatements` has the table.
 * @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
 * @throws StaleFenceError a newer token was seen: roll the transaction back. LockConfigurationError for a resource that
 *   could be no key, for what is no lock, and outside of a transaction. What the database says
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
