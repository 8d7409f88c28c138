import { type Share, shareOf } from '../contract/claim.js';
import { LockConfigurationError, LockLostError } from '../contract/errors.js';
import { whileAwaited } from '../kit/awaited-promises.js';
import type { Hold } from './hold.js';
import { currentHandles, runInside } from './call-tree.js';
import { followed } from '../events/lock-tracer.js';

/** A caller's lock between acquire and release. Made by `LockService` only. */
export class LockHandle implements AsyncDisposable {
  #released = false;

  /** @internal */
  constructor(
    /** As the caller wrote it, without the namespace. */
    readonly key: string,
    private readonly hold: Hold,
    private readonly onRelease: (hold: Hold) => Promise<void>,
  ) {}

  /**
   * Grows with every acquisition of this key, anywhere. Give it to every write the lock protects, and refuse smaller
   * ones there.
   */
  get fencingToken(): bigint {
    return this.hold.fencingToken;
  }

  /** How much of the key it has. `undefined`: all of it, so that nobody else is inside. */
  get share(): Share | undefined {
    return shareOf(this.hold.claim);
  }

  /** Aborts with a `LockLostError` as soon as the lock can no longer be trusted. Never aborts by a release. */
  get signal(): AbortSignal {
    return this.hold.signal;
  }

  get state(): 'held' | 'jeopardy' | 'lost' | 'released' {
    return this.#released ? 'released' : this.hold.state;
  }

  /**
   * Exact now: a comparison of monotonic clocks, also in the first step after the event loop was blocked. They stand
   * still, as the wall clock may, while a virtual machine is suspended, migrated or brought back from a snapshot, and
   * nothing inside it can tell. After that a former holder believes until its next renewal: only the fencing token
   * protects then.
   */
  get isHeld(): boolean {
    return !this.#released && this.hold.isHeld;
  }

  /** @throws LockLostError when the lock is lost. A released handle throws nothing: see `assertHeld`. */
  throwIfLost(): void {
    if (!this.#released && !this.hold.isHeld) throw this.hold.lossError();
  }

  /**
   * Guards a step of work that may outlive the lock: started inside and not awaited, or from a timer.
   * @throws LockLostError when the lock is lost, and with the reason `released` after the release
   */
  assertHeld(): void {
    this.throwIfLost();
    if (this.#released) throw new LockLostError(this.hold.key, 'released');
  }

  /**
   * Shows others that they are asked in the name of this lock: a text for a header or a message, which
   * `LockService.checkSequencer` and `@RequireSequencer` understand wherever the same backend is reached. A lease that
   * was shown is not handed on to the next caller of this process.
   * @throws LockLostError; LockConfigurationError after the release, and with a backend that could not check it
   */
  sequencer(): string {
    this.throwIfLost();
    if (!this.#released) return this.hold.show();
    throw new LockConfigurationError('a lock that was released has no sequencer any more', 'sequencer', this.key);
  }

  /** The means of work that the backend gives its holders, if any: with `strategy: 'row'`, see `rowManager`. */
  get attachment(): unknown {
    return this.hold.watchdog.lease.attachment;
  }

  /** @internal Whether there is anything for `complete` to do. */
  get completes(): boolean {
    return this.hold.watchdog.lease.complete !== undefined;
  }

  /**
   * Makes what was done through `attachment` last; `withLock` does so by itself. Does nothing for other backends, after
   * the release, and inside a re-entry. @throws what the backend says: nothing was done then
   */
  async complete(): Promise<void> {
    if (!this.#released) await whileAwaited(() => this.hold.complete());
  }

  /**
   * Runs `work` as the call tree that has this lock: `currentLock()` finds it there, and the same key may be taken
   * again. `withLock` does so by itself; after a bare `acquire` only what runs in here re-enters, because a call has no
   * visible end.
   */
  run<T>(work: () => T): T {
    const { hold } = this;
    return runInside(hold, this, followed(work, hold, hold.listener.service.observers.tracers));
  }

  /** @internal Its work never began: a release leaves nothing closed, whatever `minHoldMs` is. */
  forgo(): void {
    this.hold.forgo();
  }

  /**
   * Gives this caller's part of the lock back; the last part frees the key, or passes it to the next caller in this
   * process. Never rejects: if the server does not answer, observers hear of it and the key frees itself within its
   * TTL. Again = nothing.
   */
  release(): Promise<void> {
    if (this.#released) return Promise.resolve();
    this.#released = true;
    return this.onRelease(this.hold);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

/** The handles of the current call tree, innermost first. */
export function currentLocks(): LockHandle[] {
  // Not by its class: another copy of this package may have made it.
  return currentHandles().filter((handle): handle is LockHandle => 'fencingToken' in handle);
}

/** The innermost lock that the current call tree was run under, or `undefined` outside of one. */
export function currentLock(): LockHandle | undefined {
  return currentLocks()[0];
}
