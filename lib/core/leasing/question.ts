import type { Asker, GrantedLease, LeaseAttempt, LeaseStore, RefusedLease } from '../contract/lease-store.js';
import type { LeaseTimes } from './lease-times.js';
import { trustedUntil } from './trust.js';
import type { AbortListener } from '../time/abort-listener.js';
import type { Linked, LinkedQueue } from '../time/linked-queue.js';
import type { Deadline } from '../time/deadline.js';
import type { Clock, Timer } from '../time/timers.js';
import type { AcquireRequest } from './lease-request.js';
import type { Lease } from './lease.js';
import type { OwnedKey } from './owned-key.js';

/** One caller's question to a store whether a key is free, with what a first answer needs. A contender asks it again. */
export class Question implements Asker, OwnedKey, Linked<Question> {
  /** @internal */
  before: Question | undefined;
  /** @internal */
  after: Question | undefined;
  /** @internal */
  queue: LinkedQueue<Question> | undefined;
  readonly owner: string;
  readonly ttlMs: number;
  readonly deadline: Deadline;
  readonly clock: Clock;
  /** Whether the caller makes one attempt only (`waitMs: 0`). */
  readonly isSingleAttempt: boolean;
  askedAt: number;
  /** Time from which the lease is trusted. */
  sentAt: number;
  answer: Promise<LeaseAttempt> | undefined;
  /** Whether no caller waits for the answer any more. */
  abandoned = false;
  woken = false;
  onWake: (() => void) | undefined;
  unwatch: (() => void) | undefined;
  abortListener: AbortListener | undefined;
  alarm: Timer | undefined;

  constructor(
    readonly key: string,
    readonly request: AcquireRequest,
    readonly resolve: (lease: Lease | null | Promise<Lease | null>) => void,
    readonly reject: (error: unknown) => void,
  ) {
    const { owner, ttlMs, deadline } = request;
    this.owner = owner;
    this.ttlMs = ttlMs;
    this.deadline = deadline;
    this.clock = deadline.clock;
    this.isSingleAttempt = deadline.passed;
    this.askedAt = this.sentAt = this.clock.now();
  }

  watch(store: LeaseStore): void {
    if (this.isSingleAttempt) return;
    this.unwatch = store.watch?.(this.key, this.owner, () => {
      this.woken = true;
      this.onWake?.();
    });
  }

  ask(store: LeaseStore): Promise<LeaseAttempt> {
    const { key, owner, ttlMs, request } = this;
    this.askedAt = this.sentAt = this.clock.now();
    try {
      this.answer = store.tryAcquire(key, owner, ttlMs, request.metadata, this);
    } catch (error) {
      this.answer = Promise.reject(error);
    }
    return this.answer;
  }

  onSend(): boolean {
    this.sentAt = this.clock.now();
    return !this.abandoned;
  }

  /** Returns whether the refusal ends a single attempt: nothing is left on the server, and no obstacle is to be told. */
  isFinalRefusal({ obstacle, staysInLine }: RefusedLease): boolean {
    return this.isSingleAttempt && !obstacle && staysInLine !== true && this.request.inherited !== true;
  }

  /** Returns the times of the lease that the store has granted. */
  timesOf({ ttlMs = this.ttlMs, sentAt = this.sentAt }: GrantedLease): LeaseTimes {
    const { lockDelayMs = 0 } = this.request;
    return { askedMs: this.ttlMs, keptMs: ttlMs, trustedMs: ttlMs - lockDelayMs, sentAt };
  }

  /** Returns whether the caller can still trust the lease. */
  isInTime({ revoked }: GrantedLease, { sentAt, trustedMs }: LeaseTimes): boolean {
    return revoked?.aborted !== true && this.clock.now() < trustedUntil(sentAt, trustedMs);
  }
}
