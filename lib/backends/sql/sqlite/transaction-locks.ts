import { pause, systemClock } from '../../../core/index.js';
import { codesIn } from '../connections/client-error.js';
import type { TransactionLocks } from '../dialect/transaction-locks.js';

const RETRY_MS = 10;

/** By name or number. A transaction that has read before another one wrote can never write, and has a code of its own. */
const BUSY = /^(SQLITE_(BUSY|LOCKED)|[56])$/u;

export const sqliteTransactionLocks: TransactionLocks = {
  async lock(query, table, _key, waitMs) {
    const endsAt = systemClock.now() + waitMs;
    for (;;) {
      try {
        await query(`delete from ${table} where 0`, []);
        return true;
      } catch (error) {
        if (!codesIn(error).some((code) => BUSY.test(code))) throw error;
      }
      if (systemClock.now() >= endsAt) return false;
      await pause(systemClock, RETRY_MS);
    }
  },
};
