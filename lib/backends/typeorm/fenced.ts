import type { EntityManager } from 'typeorm';
import { StaleFenceError } from '../../core/index.js';
import { assertTableName, DEFAULT_FENCE_TABLE } from './lock-table.js';
import { rowsOf } from './rows-of.js';
import { dialectOf, type Query } from './sql-dialect.js';

export interface FencedOptions {
  /** @default 'distributed_lock_fence' */
  tableName?: string;
}

/**
 * Runs `work` in a transaction that a former holder cannot commit: before anything else the transaction raises the fence of
 * `resource` to the lock's token, and is refused when a newer token was there. Works with the locks of every backend. This
 * is what makes a lease safe against a holder that was paused and does not know yet that it lost the lock.
 *
 * Joins the transaction of `manager` if there is one, else opens one. The fence table is made by the migration
 * `CreateDistributedLock1760000000000`.
 * @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
 * @throws StaleFenceError a newer token was seen: `work` did not run; what `work` throws. The transaction is then rolled back,
 * by us if we opened it.
 */
export async function fenced<T>(
  manager: EntityManager,
  resource: string,
  lock: { readonly fencingToken: bigint },
  work: (manager: EntityManager) => Promise<T>,
  options: FencedOptions = {},
): Promise<T> {
  const { tableName = DEFAULT_FENCE_TABLE } = options;
  assertTableName('tableName', tableName);
  if (manager.queryRunner?.isTransactionActive !== true) {
    return manager.transaction((inner) => fenced(inner, resource, lock, work, options));
  }
  const dialect = dialectOf(manager.connection.options.type);
  await dialect.lockForWriting?.(manager, tableName);
  const query: Query = async (sql, parameters) => rowsOf(await manager.query(sql, [...parameters]));
  if (!(await dialect.raiseFence(query, tableName, resource, lock.fencingToken))) {
    const newest = await dialect.newestFence(query, tableName, resource);
    throw new StaleFenceError(resource, { token: lock.fencingToken, newest });
  }
  return work(manager);
}
