import { AsyncLocalStorage } from 'node:async_hooks';
import type { DataSource, EntityManager } from 'typeorm';
import { restartAsWriteTransaction } from '../sqlite-transaction.js';

/** Type of data sources with one connection, which all query runners share. */
const ONE_CONNECTION_TYPE = 'better-sqlite3';

interface TransactionTurn {
  readonly dataSource: DataSource;
  isOver: boolean;
}

const currentTurn = new AsyncLocalStorage<TransactionTurn>();
const lastTurnByDataSource = new WeakMap<DataSource, Promise<unknown>>();

export function isInTransaction(manager: EntityManager): boolean {
  return manager.queryRunner?.isTransactionActive === true;
}

/** Returns whether this call tree has the turn. Waiting for another turn would then never end. */
export function isInTurn(dataSource: DataSource): boolean {
  const turn = currentTurn.getStore();
  return turn?.dataSource === dataSource && !turn.isOver;
}

/**
 * Waits for earlier transactions where the data source has one connection. A call inside of a turn runs as a part of
 * the turn's transaction.
 */
export async function runInTransaction<T>(
  manager: EntityManager,
  work: (transactionManager: EntityManager) => Promise<T>,
): Promise<T> {
  const { connection: dataSource } = manager;
  if (dataSource.options.type !== ONE_CONNECTION_TYPE || isInTurn(dataSource)) return manager.transaction(work);
  const turn: TransactionTurn = { dataSource, isOver: false };
  const previousTurn = lastTurnByDataSource.get(dataSource) ?? Promise.resolve();
  const result = previousTurn
    .then(() => currentTurn.run(turn, () => runWriteTransaction(manager, work)))
    .finally(() => (turn.isOver = true));
  lastTurnByDataSource.set(
    dataSource,
    result.catch(() => undefined),
  );
  return result;
}

/**
 * Runs `work` in a transaction that has the write lock from its beginning, for which TypeORM has no option. SQLite
 * refuses a write in a transaction that read before another process wrote. With libsql, reads then stay stale.
 */
function runWriteTransaction<T>(
  manager: EntityManager,
  work: (transactionManager: EntityManager) => Promise<T>,
): Promise<T> {
  return manager.transaction(async (transactionManager) => {
    await restartAsWriteTransaction(transactionManager);
    return work(transactionManager);
  });
}
