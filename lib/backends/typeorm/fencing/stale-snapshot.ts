import type { DataSource } from 'typeorm';

/** Data sources that were warned of. A warning for each transaction would fill the log. */
const warned = new WeakSet<DataSource>();

export function hasWarnedOfSnapshots(dataSource: DataSource): boolean {
  return warned.has(dataSource);
}

/**
 * Warns the process that work under a lock reads what was there before the lock. It is no refusal: statements that
 * compute in the database, such as `set n = n - 1`, see the present in such a transaction, and the lock is the newest.
 */
export function warnOfStaleSnapshot(dataSource: DataSource, resource: string): void {
  // Others may have looked at the same time.
  if (warned.has(dataSource)) return;
  warned.add(dataSource);
  process.emitWarning(
    `a transaction that fenced("${resource}") joined had read before its lock was acquired: its reads miss what the former ` +
      'holder has committed, and what it computes from them overwrites that. Take the lock first, then begin the transaction',
    { type: 'LockWarning', code: 'LOCK_AFTER_SNAPSHOT' },
  );
}
