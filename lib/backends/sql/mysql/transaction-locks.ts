import { cleanError, isAnswer } from '../connections/database-error.js';
import type { TransactionLocks } from '../dialect/transaction-locks.js';
import { storedBytes } from '../tables/stored-key.js';

/** A limit that the server ends a wait by. The statement alone is undone then. */
const TIMED_OUT = /^ER_LOCK_(WAIT_TIMEOUT|NOWAIT)$/u;

/** Longer waits of a statement are repeated. */
const LONGEST_WAIT_S = 50;

export const mysqlTransactionLocks: TransactionLocks = {
  /** A row that is there is locked as it is. Only one that is missing is inserted: newcomers who insert wait for each other. */
  async lock(query, table, key, waitMs) {
    const values = [storedBytes(key)];
    const found = await query(`select 1 as found from ${table} where resource = ? for update skip locked`, values);
    if (found.length > 0) return true;
    const endsAt = performance.now() + waitMs;
    do {
      const leftS = Math.ceil((endsAt - performance.now()) / 1000);
      if (await insertWithin(Math.min(LONGEST_WAIT_S, Math.max(1, leftS)))) return true;
    } while (performance.now() < endsAt);
    return false;

    async function insertWithin(seconds: number): Promise<boolean> {
      try {
        await query(
          `/*M! set statement innodb_lock_wait_timeout = ${seconds} for */
           insert /*+ set_var(innodb_lock_wait_timeout = ${seconds}) */ into ${table} (resource, token) values (?, 0)
           on duplicate key update token = token`,
          values,
        );
        return true;
      } catch (error) {
        if (isAnswer(cleanError(error), TIMED_OUT)) return false;
        throw error;
      }
    }
  },
};
