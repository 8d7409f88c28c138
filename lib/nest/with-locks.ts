import { type AcquireOptions, Deadline, type LockHandle, type LockService } from '../core/index.js';

/**
 * `withLock` for several keys: all of them or none, waiting at most `waitMs` altogether. Give them sorted: whoever takes
 * keys in one order never waits for somebody who waits for him.
 */
export function withLocks<T>(
  service: LockService,
  keys: readonly string[],
  work: (locks: readonly LockHandle[]) => Promise<T>,
  options: AcquireOptions,
): Promise<T> {
  const [only = ''] = keys;
  if (keys.length === 1) return service.withLock(only, (lock) => work([lock]), options);
  const deadline = Deadline.after(options.waitMs ?? service.defaults.waitMs);
  const take = (locks: readonly LockHandle[]): Promise<T> => {
    const key = keys[locks.length];
    if (key !== undefined) {
      return service.withLock(key, (lock) => take([...locks, lock]), { ...options, waitMs: deadline.remainingMs });
    }
    for (const lock of locks) lock.throwIfLost();
    return work(locks);
  };
  return take([]);
}
