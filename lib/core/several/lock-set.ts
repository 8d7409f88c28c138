import { LockHandle } from '../holding/lock-handle.js';
import { AbortListener } from '../time/abort-listener.js';

/** Locks of several keys, taken together and released together. Made by `LockService` only. */
export class LockSet implements AsyncDisposable {
  #loss: AbortController | undefined;
  /** Listeners to the locks' signals. A lock that was re-entered outlives the set, and must not keep it. */
  readonly #listeners: AbortListener[] = [];

  /** @internal */
  constructor(
    /** Locks sorted by key. Each has a fencing token of its own; tokens of different keys cannot be compared. */
    readonly locks: readonly LockHandle[],
  ) {}

  /** Signal that aborts with the `LockLostError` of the first lock that can no longer be trusted, not by a release. */
  get signal(): AbortSignal {
    const lost = (this.#loss ??= this.#listen());
    // Reading a signal aborts it if a blocked event loop has cost its lock.
    for (const lock of this.locks) void lock.signal;
    return lost.signal;
  }

  /** Whether all locks are held, exact now, see `LockHandle.isHeld`. */
  get isHeld(): boolean {
    return this.locks.every(({ isHeld }) => isHeld);
  }

  /** @throws LockLostError when one of the locks is lost. A released set throws nothing. */
  throwIfLost(): void {
    for (const lock of this.locks) lock.throwIfLost();
  }

  /** Runs `work` as the call tree that has these locks, see `LockHandle.run`; `currentLocks()` has them all. */
  run<T>(work: () => T): T {
    const inside = this.locks.reduceRight<() => T>((inner, lock) => () => lock.run(inner), work);
    return inside();
  }

  /** @internal Whether there is anything for `complete` to do. */
  get needsCompletion(): boolean {
    return this.locks.some(({ needsCompletion }) => needsCompletion);
  }

  /** @internal */
  async complete(): Promise<void> {
    for (const lock of this.locks.toReversed()) if (lock.needsCompletion) await lock.complete();
  }

  /** Releases all, the last lock first. Never rejects, see `LockHandle.release`. A second call does nothing. */
  async release(): Promise<void> {
    this.unlisten();
    await Promise.all(this.locks.toReversed().map((lock) => lock.release()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /** @internal Stops listening: from now on `signal` does not abort. */
  unlisten(): void {
    for (const listener of this.#listeners.splice(0)) listener.end();
  }

  #listen(): AbortController {
    const lost = new AbortController();
    for (const { signal } of this.locks) {
      const onAbort = (): void => lost.abort(signal.reason);
      if (signal.aborted) onAbort();
      else this.#listeners.push(new AbortListener(signal, onAbort));
    }
    return lost;
  }
}
