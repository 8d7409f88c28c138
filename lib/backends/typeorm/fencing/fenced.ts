import { randomInt } from 'node:crypto';
import type { EntityManager } from 'typeorm';
import { assertKey, Deadline, pause, systemClock } from '../../../core/index.js';
import { type FencedTransaction, findOpenManager, runInFencedTransaction } from './fenced-transactions.js';
import { DEFAULT_FENCE_TABLE } from '../../sql/tables/lock-table.js';
import { isConflict } from '../optimistic/conflict.js';
import { runInTransaction, isInTransaction } from '../optimistic/transaction-turns.js';
import { createQuery } from '../../sql/connections/query.js';
import { assertTableName, quoteTable } from '../../sql/tables/table-name.js';
import { assertToken, type Fencing, raiseFence } from '../../sql/transactions/raise-fence.js';
import { getTableContext } from '../databases.js';
import { takeWriteLock } from '../sqlite-transaction.js';

export interface FencedOptions {
  /** Name, or `schema.name` for a table outside the data source's schema. @default 'distributed_lock_fence' */
  tableName?: string;
}

const MAX_RETRY_TIME_MS = 2_000;
const MAX_RETRY_PAUSE_MS = 20;

/**
 * Runs `work` in a transaction that a former holder cannot commit. Before anything else, the transaction raises the
 * fence of `resource` to the lock's token. It is refused when a newer token was there. This makes a lock of every
 * backend safe against a holder that was paused and does not know yet that it lost the lock.
 *
 * A lock that is not exclusive raises nothing. It is refused when an exclusive holder with a newer token has raised the
 * fence. Others can raise the fence only after the transaction has ended. Holders who share a key never refuse each
 * other.
 *
 * Take the lock first, and let this function begin the transaction. A transaction with a snapshot from before the lock
 * does not see what the former holder committed. PostgreSQL then refuses to raise the fence (40001). MySQL and MariaDB
 * go on reading the old snapshot, and the process is warned once (`LOCK_AFTER_SNAPSHOT`).
 *
 * Joins the transaction of `manager`, or the one in which this call tree has raised the same fence. Without one it
 * opens a transaction, and tries again for a while when the database is too busy. On SQLite, where TypeORM has one
 * connection for everybody, the transactions opened here take turns. The migration `CreateDistributedLock1760000000000`
 * creates the fence table.
 * @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
 * @throws StaleFenceError before `work` runs, if the fence has a newer token; any error of `work`. After both, the
 *   transaction must be rolled back, which this function does if it opened the transaction. LockConfigurationError for
 *   a resource that is no valid key, and for a value that is no lock
 */
export async function fenced<T>(
  manager: EntityManager,
  resource: string,
  lock: Fencing,
  work: (manager: EntityManager) => Promise<T>,
  options: FencedOptions = {},
): Promise<T> {
  const { tableName = DEFAULT_FENCE_TABLE } = options;
  assertTableName(tableName);
  assertKey(resource);
  assertToken('fenced()', lock);
  const fencedTransaction = { manager, tableName, resource };
  const openManager = isInTransaction(manager) ? manager : findOpenManager(fencedTransaction);
  if (!openManager)
    return retryInOwnTransaction(manager, (ownManager, onWorkBegin) =>
      raiseFenceAndRun({ ...fencedTransaction, manager: ownManager }, lock, work, onWorkBegin),
    );
  return raiseFenceAndRun({ ...fencedTransaction, manager: openManager }, lock, work);
}

/** @param onWorkBegin absent in a transaction that the application, or an outer `fenced()`, has begun */
async function raiseFenceAndRun<T>(
  fencedTransaction: FencedTransaction,
  lock: Fencing,
  work: (manager: EntityManager) => Promise<T>,
  onWorkBegin?: () => void,
): Promise<T> {
  const { manager, tableName, resource } = fencedTransaction;
  const { connection: dataSource } = manager;
  const tableContext = getTableContext(dataSource.options);
  const table = quoteTable(tableContext, tableName);
  if (dataSource.options.type === 'better-sqlite3') await takeWriteLock(manager, table);
  const transaction = {
    query: createQuery(manager),
    statements: tableContext.dialect.fence,
    table,
    isJoined: !onWorkBegin,
    source: dataSource,
  };
  await raiseFence(transaction, resource, lock);
  onWorkBegin?.();
  return runInFencedTransaction(fencedTransaction, () => work(manager));
}

/** Repeats the attempt after a conflict, as long as `work` has not begun. */
async function retryInOwnTransaction<T>(
  manager: EntityManager,
  attempt: (ownManager: EntityManager, onWorkBegin: () => void) => Promise<T>,
): Promise<T> {
  const retryDeadline = Deadline.after(MAX_RETRY_TIME_MS);
  for (;;) {
    let hasWorkBegun = false;
    try {
      return await runInTransaction(manager, (ownManager) => attempt(ownManager, () => (hasWorkBegun = true)));
    } catch (error) {
      if (hasWorkBegun || retryDeadline.passed || !isConflict(error)) throw error;
      await pause(systemClock, randomInt(MAX_RETRY_PAUSE_MS));
    }
  }
}
