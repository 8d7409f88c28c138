import { randomInt } from 'node:crypto';
import { NotSentError } from '../contract/errors.js';
import type { GrantedLease, LeaseStore } from '../contract/lease-store.js';
import { type Lease, StoreLease } from './lease.js';
import type { LeaseTimes } from './lease-times.js';
import type { CleanUp } from './owned-key.js';
import type { Outcomes } from './outcomes.js';
import type { Question } from './question.js';

/** Options of how waiters ask a store again that cannot wake them, or did not. */
export interface PollingOptions {
  /**
   * Milliseconds between two questions, give or take half, at most what is left of the holder's lease. @default 50, or
   * 30_000 where the store wakes its waiters
   */
  pollMs?: number;
  /** Milliseconds for which a question that fails is repeated before `LockBackendError`. @default 2_000 */
  patienceMs?: number;
  /** Source of the jitter of pauses, for tests: numbers from 0 to below 1. @default cryptographically random */
  random?: () => number;
}

/** Maximum pause of each waiter where many wait at the same time. */
const MAX_SHARED_POLL_MS = 5_000;

const systemRandom = (): number => randomInt(2 ** 32) / 2 ** 32;

/** Settings and parts that all contenders of a backend share. */
export class Contending {
  readonly contenders = new Set<{ callOff(reason: unknown): void }>();
  readonly patienceMs: number;
  readonly random: () => number;
  readonly #pollMs: number;

  constructor(
    readonly store: LeaseStore,
    readonly cleanUp: CleanUp,
    readonly outcomes: Outcomes,
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

  /** Counts a failed question for `health`, unless the store did not send it because its caller had given up. */
  noteFailure(error: unknown, question: Question): void {
    if (!(question.abandoned && error instanceof NotSentError)) this.outcomes.noteFailure(error, 'take', question);
  }

  leaseOf(question: Question, granted: GrantedLease, times: LeaseTimes, queued = false): Lease {
    return new StoreLease(this, question, granted, times, queued);
  }
}
