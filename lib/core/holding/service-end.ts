import { currentLocks } from './lock-handle.js';
import { settlesWithin } from '../time/within.js';
import { LockShutdownError } from '../contract/errors.js';
import type { Holds, HoldTurns } from './holds.js';
import type { ServiceContext } from './service-context.js';
import { runOutsideLocks } from './call-tree.js';

/** Time that a server, and then the backend, may take to answer when the service is closed. */
const CLOSE_MS = 5_000;
const GRACE_MS = 10_000;

/** Leaderships, whose work has to end before their keys are released. */
interface Leaders {
  /** Tells all work to end. Resolves when it has, or when the grace time of each is over. */
  end(): Promise<void>;
  /** Returns whether one of them has the key, or without a key, any key. */
  haveLock(key?: string): boolean;
}

/** Parts of a service that its end needs. */
interface EndingParts {
  readonly service: ServiceContext;
  readonly turns: HoldTurns;
  readonly holds: Holds;
  readonly leaderships: Leaders;
  readonly unfollowHealth: (() => void) | undefined;
}

/** End of a lock service: which callers it still lets in, which work it waits for, and what becomes of the rest. */
export class ServiceEnd {
  /** Maximum time that a caller may wait for a lock. */
  longestWaitMs = Infinity;
  #isDraining = false;
  #closed: Promise<void> | undefined;
  /** Resolves when the shortest grace time that was demanded has ended. */
  readonly #graceOver: Promise<void>;
  #endGrace = (): void => undefined;

  constructor(
    private readonly parts: EndingParts,
    /** Aborts `ServiceContext.stopped`. */
    private readonly stopping: AbortController,
    /** Time to wait for the work under locks, where a call does not say. */
    private readonly graceMs = GRACE_MS,
  ) {
    this.#graceOver = new Promise((resolve) => (this.#endGrace = resolve));
  }

  /** Whether the current caller gets no lock. While the service drains, work with a lock may need another one to end. */
  get refusesCaller(): boolean {
    return this.stopping.signal.aborted || (this.#isDraining && !currentLocks().some((lock) => lock.isHeld));
  }

  stop(): void {
    if (this.stopping.signal.aborted) return;
    const reason = new LockShutdownError();
    this.stopping.abort(reason);
    this.#sendWaitersAway(reason);
  }

  limitWaits(ms = this.graceMs): void {
    const { clock } = this.parts.service;
    const begunBy = clock.now();
    this.longestWaitMs = ms;
    this.parts.holds.limitAge(ms);
    void this.parts.leaderships.end();
    // A server with many short requests has some at any time. Holds that began meanwhile have as long as the others had.
    const onEnd = (): void => {
      this.#isDraining = true;
      this.#sendWaitersAway(new LockShutdownError());
      this.parts.holds.abandon(begunBy);
      this.#endGrace();
    };
    clock.schedule(ms, onEnd, { background: true });
  }

  async drain(graceMs = this.graceMs): Promise<boolean> {
    const { turns, service } = this.parts;
    this.#isDraining = true;
    void this.parts.leaderships.end();
    if (turns.isBusy && graceMs > 0) {
      await settlesWithin(service.clock, graceMs, Promise.race([turns.idle(), this.#graceOver]));
    }
    return !turns.isBusy;
  }

  shutdown(graceMs?: number): Promise<void> {
    return runOutsideLocks(() => {
      this.#closed ??= this.#graceOver.then(() => this.#shutdown(CLOSE_MS));
      void this.drain(graceMs).then(this.#endGrace);
      return this.#closed;
    });
  }

  close(withinMs = CLOSE_MS): Promise<void> {
    this.#closed ??= runOutsideLocks(() => this.#close(withinMs));
    this.#endGrace();
    return this.#closed;
  }

  /** Rejects all who wait, in this process and at the backend. */
  #sendWaitersAway(reason: unknown): void {
    this.parts.turns.rejectAll(reason);
    this.parts.service.backend.dismiss(reason);
  }

  async #shutdown(withinMs: number): Promise<void> {
    this.stop();
    const { backend, clock, observers } = this.parts.service;
    const leftMs = this.parts.holds.abandon();
    if (leftMs === 0) return this.#close(withinMs);
    this.parts.unfollowHealth?.();
    // A session ends with its connection, and would free the keys under the work.
    settlesWithin(clock, leftMs, this.parts.turns.idle())
      .then(() => backend.close())
      .catch(() => undefined);
    observers.endStreams();
  }

  async #close(withinMs = CLOSE_MS): Promise<void> {
    this.stop();
    const { backend, clock, observers } = this.parts.service;
    const led = this.parts.leaderships.end();
    await settlesWithin(
      clock,
      withinMs,
      this.parts.holds.end((key) => this.parts.leaderships.haveLock(key)),
    );
    await led;
    if (this.parts.leaderships.haveLock()) return this.#shutdown(withinMs);
    this.parts.unfollowHealth?.();
    await settlesWithin(clock, withinMs, backend.close());
    observers.endStreams();
  }
}
