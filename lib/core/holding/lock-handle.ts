import { type Share, shareOf } from '../contract/claim.js';
import { LockConfigurationError, LockLostError } from '../contract/errors.js';
import { callListener } from '../contract/call-listener.js';
import { toTracedHold, type TracedHold, wrapInTracers } from '../events/lock-tracer.js';
import { describeUnawaitedReentry } from '../contract/reentry-messages.js';
import { withKeepAlive } from '../kit/keep-alive.js';
import { warnOnce } from '../kit/warn-once.js';
import type { Hold } from './hold.js';
import { currentEntry, currentHandles, runInsideLock, runInsideLocks } from './call-tree.js';
import { createTicket } from './ticket.js';

/** Lock of one caller, from the acquisition to the release. Made by `LockService` only. */
export class LockHandle implements AsyncDisposable {
  #isReleased = false;
  readonly #isReentry: boolean;
  /** Hold as tracers see it, or `undefined` for a re-entry, for a leader, and without tracers. */
  readonly #tracedHold: TracedHold | undefined;

  /** @internal */
  constructor(
    /** Key as the caller wrote it, without the namespace. */
    readonly key: string,
    private readonly hold: Hold,
    private readonly onRelease: (hold: Hold) => Promise<void>,
  ) {
    this.#isReentry = hold.isReentered;
    const { observers, backend } = hold.listener.service;
    if (observers.tracers.length === 0 || new.target !== LockHandle || isReentry(hold)) return;
    const tracedHold = toTracedHold(hold, backend.name);
    this.#tracedHold = tracedHold;
    for (const { enter } of observers.tracers) callListener('a lock tracer threw', () => enter?.(tracedHold));
  }

  /**
   * Number that grows with every acquisition of this key, in any process. Send the number with every write that the
   * lock protects, and refuse smaller numbers where the write arrives.
   */
  get fencingToken(): bigint {
    return this.hold.fencingToken;
  }

  /** Part of the key that the lock has, or `undefined` for an exclusive lock. */
  get share(): Share | undefined {
    return shareOf(this.hold.claim);
  }

  /**
   * Signal that aborts with a `LockLostError` as soon as the lock can no longer be trusted. A release does not abort
   * the signal.
   */
  get signal(): AbortSignal {
    return this.hold.signal;
  }

  get state(): 'held' | 'jeopardy' | 'lost' | 'released' {
    return this.#isReleased ? 'released' : this.hold.state;
  }

  /**
   * Whether the lock is held at this moment, exact even right after the event loop was blocked. The monotonic clock of
   * a virtual machine stands still while the machine is suspended, migrated or restored. After that, until the next
   * renewal, only the fencing token protects.
   */
  get isHeld(): boolean {
    return !this.#isReleased && this.hold.isHeld;
  }

  /** @throws LockLostError when the lock is lost. Does not throw after a release: see `assertHeld`. */
  throwIfLost(): void {
    if (!this.#isReleased && !this.hold.isHeld) throw this.hold.createLossError();
  }

  /**
   * Checks the lock for work that may outlive it, such as a promise that nobody awaits, or a timer.
   * @throws LockLostError when the lock is lost, and with the reason `released` after the release
   */
  assertHeld(): void {
    this.throwIfLost();
    if (this.#isReleased) throw new LockLostError(this.hold.key, 'released');
  }

  /**
   * Returns a signed text that shows another process, in a header or a message, for which lock a request is made.
   * `LockService.checkSequencer` and `@RequireSequencer` check the text in any process with the same backend. The lease
   * is then not handed to the next caller of this process.
   * @throws LockLostError; LockConfigurationError after the release, and with a backend that cannot check sequencers
   */
  sequencer(): string {
    this.throwIfLost();
    if (!this.#isReleased) return this.hold.createSequencer();
    throw new LockConfigurationError('a lock that was released has no sequencer any more', 'sequencer', this.key);
  }

  /** Object that the backend provides for the work, or `undefined`. With `strategy: 'row'`, see `rowManager`. */
  get attachment(): unknown {
    return this.hold.watchdog.lease.attachment;
  }

  /** @internal */
  get needsCompletion(): boolean {
    return this.hold.watchdog.lease.complete !== undefined;
  }

  /**
   * Commits what was done through `attachment`; `withLock` calls this by itself. Does nothing for other backends, after
   * the release, and inside a re-entry. @throws the backend's error, and then nothing is committed
   */
  async complete(): Promise<void> {
    if (!this.#isReleased) await withKeepAlive(() => this.hold.completeWork());
  }

  /**
   * Runs `work` in a call tree that has this lock: `currentLock()` returns it there, and the same key may be taken
   * again. `withLock` does so by itself. After `acquire` only work that runs in here can re-enter.
   */
  run<T>(work: () => T): T {
    return runInsideLock(this.hold, this, this.#trace(work));
  }

  /** @internal Runs `work` inside all of these locks, the last of them innermost. */
  static runInAll<T>(locks: readonly LockHandle[], work: () => T): T {
    const tracedWork = locks.reduceRight((inner, lock) => lock.#trace(inner), work);
    return runInsideLocks(
      locks.map((handle) => ({ hold: handle.hold, handle })),
      tracedWork,
    );
  }

  /** @internal */
  markUnused(): void {
    this.hold.markUnused();
  }

  /**
   * Releases this caller's part of the lock. The last release frees the key, or hands the lease to the next caller of
   * this process. Never rejects: if the server does not answer, observers are told and the TTL frees the key. A second
   * call does nothing.
   */
  release(): Promise<void> {
    if (this.#isReleased) return Promise.resolve();
    this.#isReleased = true;
    const { hold } = this;
    if (!this.#isReentry && !hold.isShared) hold.isOpen = false;
    const releasePromise = this.onRelease(hold);
    if (!hold.isOpen && !this.#isReentry && !hold.hasEnded) warnOnce(describeUnawaitedReentry(hold.key));
    this.#notifyTracersOfRelease();
    return releasePromise;
  }

  /**
   * Passes the lock to another process. The lock ends here at once, and its key stays closed for `withinMs`
   * milliseconds, even if this process ends. Within that time the first call of `LockService.adopt` with the returned
   * ticket gets the lock, in any process. Keep the ticket as secret as a password.
   * @throws LockLostError; LockConfigurationError for a shared lock, inside a re-entry, and with a backend that cannot
   * pass on its locks; LockBackendError the backend does not answer, and the key is released
   */
  async transfer({ withinMs }: { readonly withinMs: number }): Promise<string> {
    const { hold } = this;
    this.assertHeld();
    const ticket = createTicket(hold, withinMs);
    this.#isReleased = true;
    const transferPromise = hold.listener.onTransfer(hold, withinMs);
    this.#notifyTracersOfRelease();
    await transferPromise;
    return ticket;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  #trace<T>(work: () => T): () => T {
    const tracedHold = this.#tracedHold;
    return tracedHold ? wrapInTracers(work, tracedHold, this.hold.listener.service.observers.tracers) : work;
  }

  #notifyTracersOfRelease(): void {
    const tracedHold = this.#tracedHold;
    if (!tracedHold) return;
    for (const { leave } of this.hold.listener.service.observers.tracers)
      callListener('a lock tracer threw', () => leave?.(tracedHold));
  }
}

/** Returns whether the current call tree is inside `hold` already. */
function isReentry(hold: Hold): boolean {
  for (let entry = currentEntry(); entry; entry = entry.outer)
    if (entry.hold === hold && !(hold.isShared && entry.handle.state === 'released')) return true;
  return false;
}

/** Returns the locks of the current call tree, innermost first. */
export function currentLocks(): LockHandle[] {
  // A handle may be of another copy of this package, so that `instanceof` would not find it.
  return currentHandles().filter((handle): handle is LockHandle => 'fencingToken' in handle);
}

/** Returns the innermost lock of the current call tree, or `undefined` outside of locks. */
export function currentLock(): LockHandle | undefined {
  return currentLocks()[0];
}
