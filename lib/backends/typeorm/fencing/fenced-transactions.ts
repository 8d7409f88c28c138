import { AsyncLocalStorage } from 'node:async_hooks';
import type { EntityManager } from 'typeorm';
import { LockConfigurationError } from '../../../core/index.js';

/** A transaction that has raised the fence of a resource. */
export interface FencedTransaction {
  readonly manager: EntityManager;
  readonly tableName: string;
  readonly resource: string;
}

interface Entry extends FencedTransaction {
  readonly outer: Entry | undefined;
  over: boolean;
}

const entries = new AsyncLocalStorage<Entry>();

/** Runs `work` as the call tree that is in the transaction. */
export async function runFenced<T>(transaction: FencedTransaction, work: () => Promise<T>): Promise<T> {
  const entry: Entry = { ...transaction, outer: entries.getStore(), over: false };
  try {
    return await entries.run(entry, work);
  } finally {
    entry.over = true;
  }
}

/** The transaction in which this call tree has raised the same fence. Another one would wait for it for ever. */
export function openTransaction(wanted: FencedTransaction): EntityManager | undefined {
  for (let entry = entries.getStore(); entry; entry = entry.outer) {
    const { manager, tableName, resource, over } = entry;
    const same = tableName === wanted.tableName && resource === wanted.resource;
    if (same && !over && manager.connection === wanted.manager.connection) return manager;
  }
  return undefined;
}

/**
 * The transaction of the `@Fenced` method, or of the work of `fenced()`, that this call runs in: the innermost one.
 * Writes by any other way are not fenced, and are not rolled back.
 * @throws LockConfigurationError outside of one, and when it is over
 */
export function fencedManager(): EntityManager {
  const entry = entries.getStore();
  if (entry?.over === false) return entry.manager;
  const why = entry ? 'its transaction is over: await all that the method starts' : 'this call runs in none';
  throw new LockConfigurationError(
    `fencedManager() belongs into a @Fenced method or the work of fenced(); ${why}`,
    'method',
  );
}
