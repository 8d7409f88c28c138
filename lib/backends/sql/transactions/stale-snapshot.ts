/** Sources for which the warning was given. A warning for each transaction would fill the log. */
const warnedSources = new WeakSet<object>();

export function hasWarnedOfStaleSnapshot(source: object): boolean {
  return warnedSources.has(source);
}

/**
 * Warns instead of throwing, because statements that compute in the database, such as `set n = n - 1`, use the latest
 * committed rows.
 */
export function warnOfStaleSnapshot(source: object, resource: string): void {
  // Several transactions may have called `hasWarnedOfStaleSnapshot` before the first of them warns.
  if (warnedSources.has(source)) return;
  warnedSources.add(source);
  process.emitWarning(
    `a transaction that raised the fence of "${resource}" had read before its lock was acquired: its reads miss what ` +
      'the former holder has committed, and what it computes from them overwrites that. Take the lock first, then begin ' +
      'the transaction',
    { type: 'LockWarning', code: 'LOCK_AFTER_SNAPSHOT' },
  );
}
