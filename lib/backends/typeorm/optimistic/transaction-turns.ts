import { AsyncLocalStorage } from 'node:async_hooks';
import type { DataSource, EntityManager } from 'typeorm';
import { beginImmediately } from '../sqlite-transaction.js';

/** Its query runners all are one and the same, on one connection. */
const ONE_CONNECTION = 'better-sqlite3';

interface Turn {
  readonly dataSource: DataSource;
  over: boolean;
}

const current = new AsyncLocalStorage<Turn>();
const lastTurns = new WeakMap<DataSource, Promise<unknown>>();

/** Whether the caller has opened a transaction for it. */
export function isInTransaction(manager: EntityManager): boolean {
  return manager.queryRunner?.isTransactionActive === true;
}

/** Whether this call tree has the data source's turn: waiting for another one would never end. */
export function isInTurn(dataSource: DataSource): boolean {
  const turn = current.getStore();
  return turn?.dataSource === dataSource && !turn.over;
}

/**
 * Runs `work` in a transaction of its own: at once, or after those before it where the data source has one connection.
 * Inside of its own call tree's turn it is a part of that transaction.
 */
export async function inTransaction<T>(manager: EntityManager, work: (inner: EntityManager) => Promise<T>): Promise<T> {
  const { connection: dataSource } = manager;
  if (dataSource.options.type !== ONE_CONNECTION || isInTurn(dataSource)) return manager.transaction(work);
  const turn: Turn = { dataSource, over: false };
  const before = lastTurns.get(dataSource) ?? Promise.resolve();
  const result = before
    .then(() => current.run(turn, () => immediately(manager, work)))
    .finally(() => (turn.over = true));
  lastTurns.set(
    dataSource,
    result.catch(() => undefined),
  );
  return result;
}

/**
 * Writes from the beginning, which TypeORM cannot say. SQLite refuses a write in a transaction that read before another
 * process wrote. With libsql the connection then stays in the past until the failed statement is garbage.
 */
function immediately<T>(manager: EntityManager, work: (inner: EntityManager) => Promise<T>): Promise<T> {
  return manager.transaction(async (inner) => {
    await beginImmediately(inner);
    return work(inner);
  });
}
