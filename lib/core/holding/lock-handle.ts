import { type Share, shareOf } from '../contract/claim.js';
import { LockConfigurationError, LockLostError } from '../contract/errors.js';
import { whileAwaited } from '../kit/awaited-promises.js';
import type { Hold } from './hold.js';
import { currentHandles, runInside } from './call-tree.js';
import { wrapInTracers } from '../events/lock-tracer.js';

/** Lock of one caller, from the acquisition to the release. Made by `LockService` only. */
export class LockHandle implements AsyncDisposable {
  #isReleased = false;

  /** @internal */
  constructor(
    /** Key as the caller wrote it, without the namespace. */
    readonly key: string,
    private readonly hold: Hold,
    private readonly onRelease: (hold: Hold) => Promise<void>,
  ) {}

  /**
   * Number that grows with every acquisition of this key, anywhere. Give it to every write that the lock protects, and
   * refuse smaller numbers there.
   */
  get fencingToken(): bigint {
    return this.hold.fencingToken;
  }

  /** Part of the key that the lock has. `undefined`: all of it, so that no other caller is inside. */
  get share(): Share | undefined {
    return shareOf(this.hold.claim);
  }

  /** Signal that aborts with a `LockLostError` as soon as the lock can no longer be trusted. A release does not abort it. */
  get signal(): AbortSignal {
    return this.hold.signal;
  }

  get state(): 'held' | 'jeopardy' | 'lost' | 'released' {
    return this.#isReleased ? 'released' : this.hold.state;
  }

  /**
   * Whether the lock is held, exact now, also in the first step after the event loop was blocked: a comparison of
   * monotonic clocks. These stand still while a virtual machine is suspended, migrated or restored, and nothing inside it
   * can tell. Afterwards a former holder believes until its next renewal, and only the fencing token protects.
   */
  get isHeld(): boolean {
    return !this.#isReleased && this.hold.isHeld;
  }

  /** @throws LockLostError when the lock is lost. A released handle throws nothing: see `assertHeld`. */
  throwIfLost(): void {
    if (!this.#isReleased && !this.hold.isHeld) throw this.hold.lossError();
  }

  /**
   * Guards a step of work that may outlive the lock, such as one that is not awaited, or a timer's.
   * @throws LockLostError when the lock is lost, and with the reason `released` after the release
   */
  assertHeld(): void {
    this.throwIfLost();
    if (this.#isReleased) throw new LockLostError(this.hold.key, 'released');
  }

  /**
   * Returns a text that shows others, in a header or a message, that they are asked in the name of this lock.
   * `LockService.checkSequencer` and `@RequireSequencer` check it wherever the same backend is reached. The lease is then
   * not handed on to the next caller of this process.
   * @throws LockLostError; LockConfigurationError after the release, and with a backend that could not check it
   */
  sequencer(): string {
    this.throwIfLost();
    if (!this.#isReleased) return this.hold.writeSequencer();
    throw new LockConfigurationError('a lock that was released has no sequencer any more', 'sequencer', this.key);
  }

  /** Object that the backend gives its holders to work with, if any: with `strategy: 'row'`, see `rowManager`. */
  get attachment(): unknown {
    return this.hold.watchdog.lease.attachment;
  }

  /** @internal Whether there is anything for `complete` to do. */
  get needsCompletion(): boolean {
    return this.hold.watchdog.lease.complete !== undefined;
  }

  /**
   * Commits what was done through `attachment`, as `withLock` does by itself. Does nothing for other backends, after the
   * release, and inside a re-entry. @throws the backend's error: nothing was done then
   */
  async complete(): Promise<void> {
    if (!this.#isReleased) await whileAwaited(() => this.hold.complete());
  }

  /**
   * Runs `work` as a call tree that has this lock: `currentLock()` finds it there, and the same key may be taken again.
   * `withLock` does so by itself. After `acquire` only work that runs in here can re-enter.
   */
  run<T>(work: () => T): T {
    const { hold } = this;
    return runInside(hold, this, wrapInTracers(work, hold, hold.listener.service.observers.tracers));
  }

  /** @internal Notes that no work began: the release leaves the key open, whatever `minHoldMs` is. */
  forgo(): void {
    this.hold.forgo();
  }

  /**
   * Releases this caller's part of the lock. The last part frees the key, or passes it to the next caller of this
   * process. Never rejects: if the server does not answer, observers hear of it and the key frees itself within its TTL.
   * A second call does nothing.
   */
  release(): Promise<void> {
    if (this.#isReleased) return Promise.resolve();
    this.#isReleased = true;
    return this.onRelease(this.hold);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

/** Returns the locks of the current call tree, innermost first. */
export function currentLocks(): LockHandle[] {
  // Another copy of this package, with a class of its own, may have made a handle.
  return currentHandles().filter((handle): handle is LockHandle => 'fencingToken' in handle);
}

/** Returns the innermost lock of the current call tree, or `undefined` outside of locks. */
export function currentLock(): LockHandle | undefined {
  return currentLocks()[0];
}
