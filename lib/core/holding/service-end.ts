import { currentLocks } from './current-locks.js';
import { within } from '../time/within.js';
import { LockShutdownError } from '../contract/errors.js';
import type { Holds } from './holds.js';
import { LockBackend } from '../leasing/lock-backend.js';
import type { Observers } from '../events/observers.js';
import { outside } from './reentrancy.js';
import type { Clock } from '../time/timers.js';

export interface ServiceParts {
  readonly backend: LockBackend;
  readonly clock: Clock;
  readonly observers: Observers;
  readonly holds: Holds;
  /** Aborts when nobody may get a lock any more. */
  readonly stopped: AbortController;
  readonly unsubscribe: () => void;
}

/** How a lock service ends: who is still let in, whom it waits for, and what becomes of the others. */
export class ServiceEnd {
  /** Nobody may wait longer for a lock. */
  longestWaitMs = Infinity;
  #draining = false;
  #closed: Promise<void> | undefined;

  constructor(private readonly parts: ServiceParts) {}

  /** While the service drains, work that it let in before may need another lock in order to end. */
  get refusesCaller(): boolean {
    return this.parts.stopped.signal.aborted || (this.#draining && !currentLocks().some((lock) => lock.isHeld));
  }

  stop(): void {
    const { stopped, holds } = this.parts;
    if (stopped.signal.aborted) return;
    const reason = new LockShutdownError();
    stopped.abort(reason);
    holds.dismiss(reason);
  }

  limitWaits(ms: number): void {
    const { clock, holds } = this.parts;
    this.longestWaitMs = ms;
    clock.schedule(ms, () => holds.dismiss(new LockShutdownError()), { background: true });
  }

  async drain(graceMs: number): Promise<boolean> {
    const { clock, holds } = this.parts;
    this.#draining = true;
    if (!holds.busy) return true;
    return graceMs > 0 && (await within(clock, graceMs, holds.idle()));
  }

  shutdown(graceMs: number, withinMs: number): Promise<void> {
    this.#closed ??= outside(() => this.#shutdown(graceMs, withinMs));
    return this.#closed;
  }

  close(withinMs: number): Promise<void> {
    this.#closed ??= outside(() => this.#close(withinMs));
    return this.#closed;
  }

  async #shutdown(graceMs: number, withinMs: number): Promise<void> {
    await this.drain(graceMs);
    this.stop();
    const { backend, clock, holds, observers, unsubscribe } = this.parts;
    const leftMs = holds.abandon();
    if (leftMs === 0) return this.#close(withinMs);
    unsubscribe();
    // A session ends with its connection, and would free the keys under the work.
    within(clock, leftMs, holds.idle())
      .then(() => backend.close())
      .catch(() => undefined);
    observers.endStreams();
  }

  async #close(withinMs: number): Promise<void> {
    this.stop();
    const { backend, clock, holds, observers, unsubscribe } = this.parts;
    await within(clock, withinMs, holds.end());
    unsubscribe();
    await within(clock, withinMs, backend.close());
    observers.endStreams();
  }
}
