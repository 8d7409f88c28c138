import { currentLocks } from './lock-handle.js';
import { within } from '../time/within.js';
import { LockShutdownError } from '../contract/errors.js';
import type { HoldRegistry } from './hold-registry.js';
import { outside } from './call-tree.js';

/** How long a server, and then the backend, may take to answer when the service is closed. */
const CLOSE_MS = 5_000;
const GRACE_MS = 10_000;

/** Those whose work has to end before their keys are released. */
interface Leaders {
  /** Tells all of them. Resolves when they have ended, or when their grace time is over. */
  end(): Promise<void>;
  /** Whether one of them has the key; without a key: any key. */
  hold(key?: string): boolean;
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

  constructor(
    private readonly holds: HoldRegistry,
    private readonly leaders: Leaders,
    /** Aborts when nobody may get a lock any more. */
    private readonly stopped: AbortController,
    private readonly unsubscribe: () => void = () => undefined,
    /** How long to wait for the work under locks, where a call does not say. */
    private readonly graceMs = GRACE_MS,
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

  limitWaits(ms = this.graceMs): void {
    const { clock } = this.holds.settings;
    const begunBy = clock.now();
    this.longestWaitMs = ms;
    this.holds.limitHolds(ms);
    void this.leaders.end();
    // A server with many short requests has some at any time. Those that began meanwhile have as long as the others had.
    const onEnd = (): void => {
      this.#draining = true;
      this.holds.dismiss(new LockShutdownError());
      this.holds.abandon(begunBy);
      this.#endGrace();
    };
    clock.schedule(ms, onEnd, { background: true });
  }

  async drain(graceMs = this.graceMs): Promise<boolean> {
    const { queue, settings } = this.holds;
    this.#draining = true;
    void this.leaders.end();
    if (queue.busy && graceMs > 0) await within(settings.clock, graceMs, Promise.race([queue.idle(), this.#graceOver]));
    return !queue.busy;
  }

  shutdown(graceMs?: number): Promise<void> {
    return outside(() => {
      this.#closed ??= this.#graceOver.then(() => this.#shutdown(CLOSE_MS));
      void this.drain(graceMs).then(this.#endGrace);
      return this.#closed;
    });
  }

  close(withinMs = CLOSE_MS): Promise<void> {
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

  async #close(withinMs = CLOSE_MS): Promise<void> {
    this.stop();
    const { backend, clock, observers } = this.holds.settings;
    const led = this.leaders.end();
    await within(
      clock,
      withinMs,
      this.holds.end((key) => this.leaders.hold(key)),
    );
    await led;
    if (this.leaders.hold()) return this.#shutdown(withinMs);
    this.unsubscribe();
    await within(clock, withinMs, backend.close());
    observers.endStreams();
  }
}
