/** Lock, or several locks that were taken together. */
interface Held {
  run<T>(work: () => T): T;
  throwIfLost(): void;
  /** Whether there is anything for `complete` to do. */
  readonly needsCompletion: boolean;
  complete(): Promise<void>;
  release(): Promise<void>;
}

/**
 * Runs `work` under a lock, needsCompletion it where the backend wants that, and releases the lock whatever happens.
 * @throws what `work` throws; LockLostError when the lock ended before `work` did
 */
export async function runUnder<T>(
  held: Held,
  work: () => Promise<T> | T,
  { awaitRelease }: { readonly awaitRelease: boolean },
): Promise<T> {
  try {
    const result = await held.run(work);
    held.throwIfLost();
    if (held.needsCompletion) await held.complete();
    return result;
  } finally {
    const released = held.release();
    if (awaitRelease) await released;
  }
}
