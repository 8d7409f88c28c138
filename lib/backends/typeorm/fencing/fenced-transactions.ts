import type { EntityManager } from 'typeorm';
import { LockConfigurationError, ownContext } from '../../../core/index.js';

export interface FencedTransaction {
  readonly manager: EntityManager;
  readonly tableName: string;
  readonly resource: string;
}

/** A transaction of `fenced()` in a call tree. `outer` is the transaction in which that `fenced()` was called. */
interface TransactionEntry extends FencedTransaction {
  readonly outer: TransactionEntry | undefined;
  isOver: boolean;
}

const currentEntry = ownContext<TransactionEntry>('fenced-transactions');

export async function runInFencedTransaction<T>(transaction: FencedTransaction, work: () => Promise<T>): Promise<T> {
  const entry: TransactionEntry = { ...transaction, outer: currentEntry.getStore(), isOver: false };
  try {
    return await currentEntry.run(entry, work);
  } finally {
    entry.isOver = true;
  }
}

/**
 * Returns the manager of an open transaction of this call tree with the same fence, if there is one. A second
 * transaction with that fence would wait for the open one forever.
 */
export function findOpenManager(transaction: FencedTransaction): EntityManager | undefined {
  for (let entry = currentEntry.getStore(); entry; entry = entry.outer) {
    const { manager, tableName, resource, isOver } = entry;
    const hasSameFence = tableName === transaction.tableName && resource === transaction.resource;
    if (hasSameFence && !isOver && manager.connection === transaction.manager.connection) return manager;
  }
  return undefined;
}

/**
 * Returns the transaction of the innermost `@Fenced` method, or work of `fenced()`, that this call runs in. Writes by
 * any other manager are not fenced, and are not rolled back.
 * @throws LockConfigurationError outside of such a transaction, and when it is over
 */
export function fencedManager(): EntityManager {
  const entry = currentEntry.getStore();
  if (entry?.isOver === false) return entry.manager;
  const reason = entry ? 'its transaction is over: await all that the method starts' : 'this call runs in none';
  throw new LockConfigurationError(
    `fencedManager() belongs into a @Fenced method or the work of fenced(); ${reason}`,
    'method',
  );
}
