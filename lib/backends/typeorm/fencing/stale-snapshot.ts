import type { DataSource } from 'typeorm';

/** Data sources that were warned of, since a warning for each transaction would fill the log. */
const warnedDataSources = new WeakSet<DataSource>();

export function hasWarnedOfSnapshots(dataSource: DataSource): boolean {
  return warnedDataSources.has(dataSource);
}

/**
 * Warns that a transaction had taken its snapshot before the lock was acquired: its reads may be stale. This is no error,
 * because statements that compute in the database, such as `set n = n - 1`, use the latest committed rows.
 */
export function warnOfStaleSnapshot(dataSource: DataSource, resource: string): void {
  // Other transactions may have asked `hasWarnedOfSnapshots` before the first one warned.
  if (warnedDataSources.has(dataSource)) return;
  warnedDataSources.add(dataSource);
  process.emitWarning(
    `a transaction that fenced("${resource}") joined had read before its lock was acquired: its reads miss what the former ` +
      'holder has committed, and what it computes from them overwrites that. Take the lock first, then begin the transaction',
    { type: 'LockWarning', code: 'LOCK_AFTER_SNAPSHOT' },
  );
}
