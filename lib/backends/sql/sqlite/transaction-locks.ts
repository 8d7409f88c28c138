import { pause, systemClock } from '../../../core/index.js';
import { findErrorCodes } from '../connections/client-error.js';
import type { TransactionLocks } from '../dialect/transaction-locks.js';

const RETRY_PAUSE_MS = 10;

/**
 * Codes for a file that another connection writes. They exclude SQLITE_BUSY_SNAPSHOT, the code for a transaction that
 * read before another one wrote: such a transaction can never write.
 */
const BUSY_CODE_PATTERN = /^(SQLITE_(BUSY|LOCKED)|[56])$/u;

export const sqliteTransactionLocks: TransactionLocks = {
  async lock(query, table, _key, waitMs) {
    const deadlineAt = systemClock.now() + waitMs;
    for (;;) {
      try {
        // Takes the write lock, and deletes nothing.
        await query(`delete from ${table} where 0`, []);
        return true;
      } catch (error) {
        if (!findErrorCodes(error).some((code) => BUSY_CODE_PATTERN.test(code))) throw error;
      }
      if (systemClock.now() >= deadlineAt) return false;
      await pause(systemClock, RETRY_PAUSE_MS);
    }
  },
};
