import { isLockError } from '../../../core/index.js';

/**
 * Answers to a transaction that was rolled back for another's sake, and may succeed when it runs again. They are
 * serialization failures, deadlocks, and `ER_CHECKREAD` of MariaDB: a row has changed since it was read.
 */
const CODES = /^(40001|40P01|ER_LOCK_DEADLOCK|ER_LOCK_WAIT_TIMEOUT|ER_CHECKREAD)$|^SQLITE_(BUSY|LOCKED)/u;

/** Answers to an update of a row that somebody has changed since the transaction began to read. */
const CHANGED_SINCE = /^(40001|ER_CHECKREAD|SQLITE_BUSY_SNAPSHOT)$/u;

/** Whether the database refused an update because somebody else has changed the row since the transaction began to read. */
export function hasChangedSince(error: unknown): boolean {
  return error instanceof Error && 'code' in error && CHANGED_SINCE.test(String(error.code));
}

/** Whether another run may succeed. One that was repeated up to its limit already is not repeated again further out. */
export function isConflict(error: unknown): boolean {
  if (isLockError(error, 'OPTIMISTIC_CONFLICT')) return error.attempts === 1;
  return error instanceof Error && 'code' in error && CODES.test(String(error.code));
}
