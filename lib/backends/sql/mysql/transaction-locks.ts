import { findErrorCodes } from '../connections/client-error.js';
import type { Query } from '../connections/query.js';
import type { TransactionLocks } from '../dialect/transaction-locks.js';
import { lockFenceRow } from './fence-row.js';

const LOCK_TIMEOUT_CODE_PATTERN = /^(ER_LOCK_WAIT_TIMEOUT|1205)$/u;

export const mysqlTransactionLocks: TransactionLocks = {
  async lock(query, table, key, waitMs) {
    if (waitMs !== Infinity) return lockRowWithTimeout(query, table, key, Math.ceil(waitMs / 1000));
    // The server has no unlimited wait: after its time-out, the statement is sent again.
    while (!(await lockRow(query, table, key)));
    return true;
  },
};

/** Waits for the row, up to `seconds`. With 0, MySQL waits for a second and MariaDB does not wait. */
async function lockRowWithTimeout(query: Query, table: string, key: string, seconds: number): Promise<boolean> {
  const settingName = 'session innodb_lock_wait_timeout';
  await query(`set @nestjs_distributed_lock = @@${settingName.replace(' ', '.')}, ${settingName} = ${seconds}`, []);
  const restoreTimeout = () => query(`set ${settingName} = @nestjs_distributed_lock`, []);
  let isLocked: boolean;
  try {
    isLocked = await lockRow(query, table, key);
  } catch (error) {
    // The application's pool may use the connection again. The restoration fails if the connection is gone.
    await restoreTimeout().catch(() => undefined);
    throw error;
  }
  await restoreTimeout();
  return isLocked;
}

/**
 * Resolves to false after a time-out that has left the transaction usable.
 * @throws the server's error, also for a time-out that has rolled the transaction back
 */
async function lockRow(query: Query, table: string, key: string): Promise<boolean> {
  try {
    await lockFenceRow(query, table, key);
    return true;
  } catch (error) {
    const isTimeout = findErrorCodes(error).some((code) => LOCK_TIMEOUT_CODE_PATTERN.test(code));
    if (isTimeout && (await isTransactionKeptAfterTimeout(query))) return false;
    throw error;
  }
}

async function isTransactionKeptAfterTimeout(query: Query): Promise<boolean> {
  const [row] = await query('select @@innodb_rollback_on_timeout as undoes', []);
  // Some clients return rows without column names. The setting is then unknown.
  return row?.['undoes'] !== undefined && Number(row['undoes']) === 0;
}
