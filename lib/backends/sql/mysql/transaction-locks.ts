import { cleanError, isAnswer } from '../connections/database-error.js';
import type { Query } from '../connections/query.js';
import type { TransactionLocks } from '../dialect/transaction-locks.js';
import { storedBytes } from '../tables/stored-key.js';

/** The server's answers to a wait that was too long. It has undone the statement alone. */
const TIMED_OUT = /^ER_LOCK_WAIT_TIMEOUT$/u;

export const mysqlTransactionLocks: TransactionLocks = {
  async lock(query, table, key, waitMs) {
    if (waitMs !== Infinity) return lockWithin(query, table, key, Math.ceil(waitMs / 1000));
    while (!(await lockRow(query, table, key)));
    return true;
  },
};

/** MySQL takes 0 seconds for 1, and MariaDB does not wait then. */
async function lockWithin(query: Query, table: string, key: string, seconds: number): Promise<boolean> {
  const limit = 'session innodb_lock_wait_timeout';
  await query(`set @nestjs_distributed_lock = @@${limit.replace(' ', '.')}, ${limit} = ${seconds}`, []);
  const isOurs = await lockRow(query, table, key);
  await query(`set ${limit} = @nestjs_distributed_lock`, []);
  return isOurs;
}

/**
 * Makes the row, or locks the one that is there, in one statement: a look for a missing row would lock its neighbours.
 * Resolves to false when the wait took longer than the session allows.
 */
async function lockRow(query: Query, table: string, key: string): Promise<boolean> {
  try {
    await query(`insert into ${table} (resource, token) values (?, 0) on duplicate key update token = token`, [
      storedBytes(key),
    ]);
    return true;
  } catch (error) {
    if (isAnswer(cleanError(error), TIMED_OUT)) return false;
    throw error;
  }
}
