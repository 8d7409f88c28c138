import { isLockError } from '../../../core/index.js';

/**
 * Codes of serialization failures, deadlocks, waits that were too long and busy files. `ER_CHECKREAD` of MariaDB: a row
 * has changed since it was read.
 */
const CONFLICT_CODE_PATTERN =
  /^(40001|40P01|ER_LOCK_DEADLOCK|ER_LOCK_WAIT_TIMEOUT|ER_CHECKREAD)$|^SQLITE_(BUSY|LOCKED)/u;

/** Codes for an update of a row that another transaction has changed since this one began to read. */
const CHANGED_ROW_CODE_PATTERN = /^(40001|ER_CHECKREAD|SQLITE_BUSY_SNAPSHOT)$/u;

export function isChangedRowError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && CHANGED_ROW_CODE_PATTERN.test(String(error.code));
}

/** Returns whether work may be repeated: not if inner work has already been repeated up to its own limit. */
export function isConflict(error: unknown): boolean {
  if (isLockError(error, 'OPTIMISTIC_CONFLICT')) return error.attempts === 1;
  return error instanceof Error && 'code' in error && CONFLICT_CODE_PATTERN.test(String(error.code));
}
