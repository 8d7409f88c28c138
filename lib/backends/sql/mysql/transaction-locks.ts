import { codesIn } from '../connections/client-error.js';
import type { Query } from '../connections/query.js';
import type { TransactionLocks } from '../dialect/transaction-locks.js';
import { lockFenceRow } from './fence-row.js';

/** The server's answer to a wait that was too long, by name or number. */
const TIMED_OUT = /^(ER_LOCK_WAIT_TIMEOUT|1205)$/u;

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
  const restore = () => query(`set ${limit} = @nestjs_distributed_lock`, []);
  let isOurs: boolean;
  try {
    isOurs = await lockRow(query, table, key);
  } catch (error) {
    // The connection goes back to the application's pool, unless it is gone.
    await restore().catch(() => undefined);
    throw error;
  }
  await restore();
  return isOurs;
}

/**
 * Resolves to false when the wait took longer than the session allows, and the transaction goes on.
 * @throws what the server says, also to such a wait where that ends the transaction: a lock would end at once then
 */
async function lockRow(query: Query, table: string, key: string): Promise<boolean> {
  try {
    await lockFenceRow(query, table, key);
    return true;
  } catch (error) {
    const isTimeout = codesIn(error).some((code) => TIMED_OUT.test(code));
    if (isTimeout && (await keepsTransactions(query))) return false;
    throw error;
  }
}

/** Some servers are set to roll the whole transaction back after a wait that was too long. */
async function keepsTransactions(query: Query): Promise<boolean> {
  const [row] = await query('select @@innodb_rollback_on_timeout as undoes', []);
  // A client may have rows of a shape that we do not know.
  return row?.['undoes'] !== undefined && Number(row['undoes']) === 0;
}
