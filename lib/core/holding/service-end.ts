import { currentLocks } from './lock-handle.js';
import { isFulfilledWithin } from '../time/within.js';
import { LockShutdownError } from '../contract/errors.js';
import type { Holds, HoldTurns } from './holds.js';
import type { ServiceContext } from './service-context.js';
import { runOutsideLocks } from './call-tree.js';

/** Milliseconds that a close waits for the releases, and then again for the close of the backend. */
const DEFAULT_CLOSE_MS = 5_000;
const DEFAULT_GRACE_MS = 10_000;

interface LeadershipGroup {
  /** Aborts all work. Resolves when the work has ended, or when the grace time of each leadership is over. */
  end(): Promise<void>;
  /** Returns whether a leadership has the key, or without an argument, whether one has any key. */
  haveLock(key?: string): boolean;
}

interface ServiceEndDependencies {
  readonly service: ServiceContext;
  readonly turns: HoldTurns;
  readonly holds: Holds;
  readonly leaderships: LeadershipGroup;
  readonly stopFollowingHealth: () => void;
}

export class ServiceEnd {
  maxWaitMs = Infinity;
  #isDraining = false;
  #closePromise: Promise<void> | undefined;
  /** Resolves at the earliest end of all grace times that were requested. */
  readonly #graceEndPromise: Promise<void>;
  #resolveGraceEnd = (): void => undefined;

  constructor(
    private readonly dependencies: ServiceEndDependencies,
    private readonly stopController: AbortController,
    private readonly graceMs = DEFAULT_GRACE_MS,
  ) {
    this.#graceEndPromise = new Promise((resolve) => (this.#resolveGraceEnd = resolve));
  }

  /** Whether the present caller gets no lock. While the service drains, only a caller with a lock may take others. */
  get isCallerRefused(): boolean {
    return this.stopController.signal.aborted || (this.#isDraining && !currentLocks().some((lock) => lock.isHeld));
  }

  stop(): void {
    if (this.stopController.signal.aborted) return;
    const reason = new LockShutdownError();
    this.stopController.abort(reason);
    this.#rejectWaiters(reason);
  }

  beginGraceTime(ms = this.graceMs): void {
    const { clock } = this.dependencies.service;
    const graceStartedAt = clock.now();
    this.maxWaitMs = ms;
    this.dependencies.holds.limitAgeOfNewHolds(ms);
    void this.dependencies.leaderships.end();
    // Holds that begin later are not ended here: each may last for `ms`, by `limitAgeOfNewHolds`.
    const endGraceTime = (): void => {
      this.#isDraining = true;
      this.#rejectWaiters(new LockShutdownError());
      this.dependencies.holds.abandonAll(graceStartedAt);
      this.#resolveGraceEnd();
    };
    clock.schedule(ms, endGraceTime, { background: true });
  }

  async drain(graceMs = this.graceMs): Promise<boolean> {
    const { turns, service } = this.dependencies;
    this.#isDraining = true;
    void this.dependencies.leaderships.end();
    if (turns.isBusy && graceMs > 0) {
      await isFulfilledWithin(service.clock, graceMs, Promise.race([turns.waitUntilIdle(), this.#graceEndPromise]));
    }
    return !turns.isBusy;
  }

  shutdown(graceMs?: number): Promise<void> {
    return runOutsideLocks(() => {
      this.#closePromise ??= this.#graceEndPromise.then(() => this.#abandonHoldsAndClose(DEFAULT_CLOSE_MS));
      void this.drain(graceMs).then(this.#resolveGraceEnd);
      return this.#closePromise;
    });
  }

  close(withinMs = DEFAULT_CLOSE_MS): Promise<void> {
    this.#closePromise ??= runOutsideLocks(() => this.#endHoldsAndClose(withinMs));
    this.#resolveGraceEnd();
    return this.#closePromise;
  }

  #rejectWaiters(reason: unknown): void {
    this.dependencies.turns.rejectWaiters(reason);
    this.dependencies.service.backend.rejectAll(reason);
  }

  async #abandonHoldsAndClose(withinMs: number): Promise<void> {
    this.stop();
    const { backend, clock, observers, pendingWork } = this.dependencies.service;
    const leftMs = this.dependencies.holds.abandonAll();
    if (leftMs === 0) return this.#endHoldsAndClose(withinMs);
    this.dependencies.stopFollowingHealth();
    this.dependencies.holds.endLeaseWatch();
    // The backend is closed after the work, because the end of a session would free the keys that the work needs. The
    // last release may still be pending when all turns have ended.
    const workEndPromise = this.dependencies.turns.waitUntilIdle().then(() => pendingWork.waitUntilIdle());
    isFulfilledWithin(clock, leftMs, workEndPromise)
      .then(() => backend.close())
      .catch(() => undefined);
    observers.endStreams();
  }

  async #endHoldsAndClose(withinMs = DEFAULT_CLOSE_MS): Promise<void> {
    this.stop();
    const { backend, clock, observers } = this.dependencies.service;
    const leadershipsEndPromise = this.dependencies.leaderships.end();
    await isFulfilledWithin(
      clock,
      withinMs,
      this.dependencies.holds.endAll((key) => this.dependencies.leaderships.haveLock(key)),
    );
    await leadershipsEndPromise;
    // A leader whose work goes on after its grace time keeps its key.
    if (this.dependencies.leaderships.haveLock()) return this.#abandonHoldsAndClose(withinMs);
    this.dependencies.stopFollowingHealth();
    this.dependencies.holds.endLeaseWatch();
    try {
      await isFulfilledWithin(clock, withinMs, backend.close());
    } finally {
      observers.endStreams();
    }
  }
}
