import { currentLocks } from './current-locks.js';
import { within } from '../time/within.js';
import { LockShutdownError } from '../contract/errors.js';
import type { HoldRegistry } from './hold-registry.js';
import { LockBackend } from '../leasing/lock-backend.js';
import type { Observers } from '../events/observers.js';
import { outside } from './reentrancy.js';
import type { Clock } from '../time/timers.js';

export interface ServiceParts {
  readonly backend: LockBackend;
  readonly clock: Clock;
  readonly observers: Observers;
  readonly holds: HoldRegistry;
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
  /** The shortest of the grace times that were demanded has ended. */
  readonly #graceOver: Promise<void>;
  #endGrace = (): void => undefined;

  constructor(private readonly parts: ServiceParts) {
    this.#graceOver = new Promise((resolve) => (this.#endGrace = resolve));
  }

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
    const onEnd = (): void => {
      holds.dismiss(new LockShutdownError());
      holds.abandon(ms);
      this.#endGrace();
    };
    clock.schedule(ms, onEnd, { background: true });
  }

  async drain(graceMs: number): Promise<boolean> {
    const { clock, holds } = this.parts;
    this.#draining = true;
    if (holds.busy && graceMs > 0) await within(clock, graceMs, Promise.race([holds.idle(), this.#graceOver]));
    return !holds.busy;
  }

  shutdown(graceMs: number, withinMs: number): Promise<void> {
    return outside(() => {
      this.#closed ??= this.#graceOver.then(() => this.#shutdown(withinMs));
      void this.drain(graceMs).then(this.#endGrace);
      return this.#closed;
    });
  }

  close(withinMs: number): Promise<void> {
    this.#closed ??= outside(() => this.#close(withinMs));
    this.#endGrace();
    return this.#closed;
  }

  async #shutdown(withinMs: number): Promise<void> {
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
