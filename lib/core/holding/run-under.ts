/** `LockHandle` or `LockSet`. */
interface LockLike {
  run<T>(work: () => T): T;
  throwIfLost(): void;
  readonly needsCompletion: boolean;
  complete(): Promise<void>;
  release(): Promise<void>;
}

/** @throws what `work` throws; LockLostError when the lock ended before `work` did */
export async function runUnderLock<T>(
  lock: LockLike,
  work: () => Promise<T> | T,
  { awaitRelease }: { readonly awaitRelease: boolean },
): Promise<T> {
  try {
    const result = await lock.run(work);
    lock.throwIfLost();
    if (lock.needsCompletion) await lock.complete();
    return result;
  } finally {
    const releasePromise = lock.release();
    if (awaitRelease) await releasePromise;
  }
}
