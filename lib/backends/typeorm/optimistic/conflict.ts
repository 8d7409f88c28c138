import { OptimisticConflictError } from '../../../core/index.js';

/** Answers to a transaction that was rolled back for another's sake. It may succeed when it runs again. */
const CODES: ReadonlySet<unknown> = new Set([
  '40001', // PostgreSQL: serialization failure
  '40P01', // PostgreSQL: deadlock
  'ER_LOCK_DEADLOCK',
  'ER_LOCK_WAIT_TIMEOUT',
  'ER_CHECKREAD', // MariaDB with innodb_snapshot_isolation: the row has changed since it was read
]);

/** Whether another run may succeed. One that was repeated up to its limit already is not repeated again further out. */
export function isConflict(error: unknown): boolean {
  if (error instanceof OptimisticConflictError) return error.attempts === 1;
  if (!(error instanceof Error && 'code' in error)) return false;
  return CODES.has(error.code) || /^SQLITE_(BUSY|LOCKED)/u.test(String(error.code));
}
