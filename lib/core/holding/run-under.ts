/** A lock, or several that were taken together. */
interface Held {
  run<T>(work: () => T): T;
  throwIfLost(): void;
  /** Whether there is anything for `complete` to do. */
  readonly completes: boolean;
  complete(): Promise<void>;
  release(): Promise<void>;
}

/**
 * Runs `work` under what is held, makes what it did last where the backend can, and gives the lock back whatever happens.
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
    if (held.completes) await held.complete();
    return result;
  } finally {
    const released = held.release();
    if (awaitRelease) await released;
  }
}
