import { currentLocks } from './lock-handle.js';
import { within } from '../time/within.js';
import { LockShutdownError } from '../contract/errors.js';
import type { HoldRegistry } from './hold-registry.js';
import { outside } from './call-tree.js';

/** How a lock service ends: who is still let in, whom it waits for, and what becomes of the others. */
export class ServiceEnd {
  /** Nobody may wait longer for a lock. */
  longestWaitMs = Infinity;
  #draining = false;
  #closed: Promise<void> | undefined;
  /** The shortest of the grace times that were demanded has ended. */
  readonly #graceOver: Promise<void>;
  #endGrace = (): void => undefined;

  constructor(
    private readonly holds: HoldRegistry,
    /** Aborts when nobody may get a lock any more. */
    private readonly stopped: AbortController,
    private readonly unsubscribe: () => void,
  ) {
    this.#graceOver = new Promise((resolve) => (this.#endGrace = resolve));
  }

  /** While the service drains, work that it let in before may need another lock in order to end. */
  get refusesCaller(): boolean {
    return this.stopped.signal.aborted || (this.#draining && !currentLocks().some((lock) => lock.isHeld));
  }

  stop(): void {
    if (this.stopped.signal.aborted) return;
    const reason = new LockShutdownError();
    this.stopped.abort(reason);
    this.holds.dismiss(reason);
  }

  limitWaits(ms: number): void {
    this.longestWaitMs = ms;
    const onEnd = (): void => {
      this.holds.dismiss(new LockShutdownError());
      this.holds.abandon(ms);
      this.#endGrace();
    };
    this.holds.settings.clock.schedule(ms, onEnd, { background: true });
  }

  async drain(graceMs: number): Promise<boolean> {
    const { queue, settings } = this.holds;
    this.#draining = true;
    if (queue.busy && graceMs > 0) await within(settings.clock, graceMs, Promise.race([queue.idle(), this.#graceOver]));
    return !queue.busy;
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
    const { backend, clock, observers } = this.holds.settings;
    const leftMs = this.holds.abandon();
    if (leftMs === 0) return this.#close(withinMs);
    this.unsubscribe();
    // A session ends with its connection, and would free the keys under the work.
    within(clock, leftMs, this.holds.queue.idle())
      .then(() => backend.close())
      .catch(() => undefined);
    observers.endStreams();
  }

  async #close(withinMs: number): Promise<void> {
    this.stop();
    const { backend, clock, observers } = this.holds.settings;
    await within(clock, withinMs, this.holds.end());
    this.unsubscribe();
    await within(clock, withinMs, backend.close());
    observers.endStreams();
  }
}
