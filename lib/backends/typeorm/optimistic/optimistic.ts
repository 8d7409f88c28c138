import type { DataSource, EntityManager } from 'typeorm';
import { repeatOnConflict, resolveOptimisticOptions, type OptimisticOptions } from './optimistic-retries.js';
import { runInTransaction, isInTransaction, isInTurn } from './transaction-turns.js';

/**
 * Runs `work` in a transaction, and all of it again in a new one after a conflict. A conflict is another version found
 * by `updateVersioned`, a deadlock, or a refusal to serialize. This function takes no lock of a key: nobody waits, and
 * the loser computes again. `work` reads all that it decides on through its manager, and does nothing that may not
 * happen twice.
 *
 * Inside of a transaction of the caller it joins that one and repeats nothing, since a repetition would read the same
 * old rows. The caller must then repeat the transaction. On SQLite, where TypeORM has one connection for everybody, the
 * calls of one process take turns. Calls of several processes write in turn (`BEGIN IMMEDIATE`). Plain `transaction()`
 * calls at the same time still nest into each other.
 * @throws OptimisticConflictError after `retries` repetitions. Any other error of `work`, at once. Nothing is written
 *   in either case
 */
export async function optimistic<T>(
  source: DataSource | EntityManager,
  work: (manager: EntityManager) => Promise<T>,
  options: OptimisticOptions = {},
): Promise<T> {
  const resolvedOptions = resolveOptimisticOptions(options);
  const manager = 'manager' in source ? source.manager : source;
  if (isInTransaction(manager)) return work(manager);
  if (isInTurn(manager.connection)) return runInTransaction(manager, work);
  return repeatOnConflict(() => runInTransaction(manager, work), resolvedOptions);
}
