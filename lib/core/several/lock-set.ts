import { LockHandle } from '../holding/lock-handle.js';
import { AbortListener } from '../time/abort-listener.js';
import { createUnlimitedAbortController } from '../time/unlimited-abort-controller.js';

/** Locks of several keys that were taken together and are released together. Only `LockService` creates one. */
export class LockSet implements AsyncDisposable {
  #lossController: AbortController | undefined;
  /** Listeners to the locks' signals, removed at the end of the set, which a re-entered lock outlives. */
  readonly #listeners: AbortListener[] = [];

  /** @internal */
  constructor(
    /** Locks sorted by key. Each has its own fencing token; tokens of different keys cannot be compared. */
    readonly locks: readonly LockHandle[],
  ) {}

  /** Signal that aborts with the `LockLostError` of the first lost lock. A release does not abort the signal. */
  get signal(): AbortSignal {
    const controller = (this.#lossController ??= this.#listenForLosses());
    // Reading a lock's signal aborts it if the lock expired while the event loop was blocked.
    for (const lock of this.locks) void lock.signal;
    return controller.signal;
  }

  /** Whether all locks are held at this moment, see `LockHandle.isHeld`. */
  get isHeld(): boolean {
    return this.locks.every(({ isHeld }) => isHeld);
  }

  /** @throws LockLostError when one of the locks is lost. Does not throw after a release. */
  throwIfLost(): void {
    for (const lock of this.locks) lock.throwIfLost();
  }

  /** Runs `work` so that calls inside it can re-enter these locks, see `LockHandle.run`. */
  run<T>(work: () => T): T {
    return LockHandle.runInAll(this.locks, work);
  }

  /** @internal Whether a backend has work to commit, see `LockHandle.complete`. */
  get needsCompletion(): boolean {
    return this.locks.some(({ needsCompletion }) => needsCompletion);
  }

  /** @internal Commits the work of each lock, see `LockHandle.complete`. */
  async complete(): Promise<void> {
    for (const lock of this.locks.toReversed()) if (lock.needsCompletion) await lock.complete();
  }

  /**
   * Releases all locks. The requests are sent together, that of the last lock first. Never rejects, see
   * `LockHandle.release`. A second call does nothing.
   */
  async release(): Promise<void> {
    this.stopListening();
    await Promise.all(this.locks.toReversed().map((lock) => lock.release()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /** @internal Stops listening to the locks, so that `signal` aborts no more. */
  stopListening(): void {
    for (const listener of this.#listeners.splice(0)) listener.end();
  }

  #listenForLosses(): AbortController {
    const controller = createUnlimitedAbortController();
    for (const { signal } of this.locks) {
      const onAbort = (): void => controller.abort(signal.reason);
      if (signal.aborted) onAbort();
      else this.#listeners.push(new AbortListener(signal, onAbort));
    }
    return controller;
  }
}
