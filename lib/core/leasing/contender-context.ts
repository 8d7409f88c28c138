import { randomInt } from 'node:crypto';
import { NotSentError } from '../contract/errors.js';
import type { GrantedLease, LeaseStore } from '../contract/lease-store.js';
import { type Lease, StoreLease } from './lease.js';
import type { LeaseTimes } from './lease-times.js';
import type { CleanUp } from './owned-key.js';
import type { ObservedHealth } from './observed-health.js';
import type { Question } from './question.js';

/** Options for the repeated questions of a waiter, which find a free key without a wake-up by the store. */
export interface PollingOptions {
  /**
   * Milliseconds between two questions, randomly up to half more or less, and never longer than the holder's lease
   * lasts.
   * @default 50, or 30_000 where the store wakes its waiters
   */
  pollMs?: number;
  /** Milliseconds for which a failing question is repeated before `LockBackendError`. @default 2_000 */
  patienceMs?: number;
  /** Source of the jitter of pauses, for tests: numbers from 0 to below 1. @default cryptographically random */
  random?: () => number;
}

/** Maximum pause between two questions where many waiters lengthen it. */
const MAX_SHARED_POLL_MS = 5_000;

const systemRandom = (): number => randomInt(2 ** 32) / 2 ** 32;

export class ContenderContext {
  readonly contenders = new Set<{ cancel(reason: unknown): void }>();
  readonly patienceMs: number;
  readonly random: () => number;
  readonly #pollMs: number;

  constructor(
    readonly store: LeaseStore,
    readonly cleanUp: CleanUp,
    readonly observedHealth: ObservedHealth,
    { pollMs = store.watch ? 30_000 : 50, patienceMs = 2_000, random = systemRandom }: PollingOptions,
  ) {
    this.#pollMs = pollMs;
    this.patienceMs = patienceMs;
    this.random = random;
  }

  get pollMs(): number {
    const sharedMs = this.contenders.size * (this.store.traits?.pollMsPerWaiter ?? 0);
    return Math.max(this.#pollMs, Math.min(MAX_SHARED_POLL_MS, sharedMs));
  }

  noteFailure(error: unknown, question: Question): void {
    if (!(question.hasContenderEnded && error instanceof NotSentError))
      this.observedHealth.noteFailure(error, 'acquire', question);
  }

  createLease(question: Question, granted: GrantedLease, times: LeaseTimes, wasQueued = false): Lease {
    return new StoreLease(this, question, granted, times, wasQueued);
  }
}
