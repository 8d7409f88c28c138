import { randomInt } from 'node:crypto';
import { NotSentError } from '../contract/errors.js';
import type { GrantedLease, LeaseStore } from '../contract/lease-store.js';
import { type Lease, StoreLease } from './lease.js';
import type { LeaseTimes } from './lease-times.js';
import type { ReleaseInBackground } from './owned-key.js';
import type { ObservedHealth } from './observed-health.js';
import type { PendingAcquisition } from './pending-acquisition.js';

/** Options of the polls of a waiting caller. Polling finds a free key even if the store sends no wake-up. */
export interface PollingOptions {
  /**
   * Mean milliseconds between two polls, varied at random by up to half. A poll comes at the latest when the holder's
   * lease ends.
   * @default 50, or 30_000 where the store wakes its waiters
   */
  pollMs?: number;
  /** Milliseconds for which a failing request is repeated before `LockBackendError`. @default 2_000 */
  patienceMs?: number;
  /** Source of the jitter of pauses, for tests: numbers from 0 to below 1. @default cryptographically random */
  random?: () => number;
}

/** Maximum to which the number of waiters of this process raises `pollMs`. A greater option `pollMs` is kept. */
const MAX_CROWDED_POLL_MS = 5_000;

const systemRandom = (): number => randomInt(2 ** 32) / 2 ** 32;

/** State that all contenders of a store share. A `Contender` continues an acquisition that got no lease at once. */
export class ContenderContext {
  readonly contenders = new Set<{ cancel(reason: unknown): void }>();
  readonly patienceMs: number;
  readonly random: () => number;
  readonly #minPollMs: number;

  constructor(
    readonly store: LeaseStore,
    readonly releaseInBackground: ReleaseInBackground,
    readonly observedHealth: ObservedHealth,
    { pollMs = store.watch ? 30_000 : 50, patienceMs = 2_000, random = systemRandom }: PollingOptions,
  ) {
    this.#minPollMs = pollMs;
    this.patienceMs = patienceMs;
    this.random = random;
  }

  get pollMs(): number {
    const pollMsForWaiterCount = this.contenders.size * (this.store.traits?.pollMsPerWaiter ?? 0);
    return Math.max(this.#minPollMs, Math.min(MAX_CROWDED_POLL_MS, pollMsForWaiterCount));
  }

  /** Notes a failure for the health, unless the store did not send the request because the caller had given up. */
  noteFailure(error: unknown, acquisition: PendingAcquisition): void {
    if (!(acquisition.hasContenderEnded && error instanceof NotSentError))
      this.observedHealth.noteFailure(error, 'acquire', acquisition);
  }

  createLease(acquisition: PendingAcquisition, granted: GrantedLease, times: LeaseTimes, wasQueued = false): Lease {
    return new StoreLease(this, acquisition, granted, times, wasQueued);
  }
}
