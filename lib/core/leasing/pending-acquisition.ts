import { assertCanAdopt } from './can-adopt.js';
import type { Caller, GrantedLease, LeaseAttempt, LeaseStore, RefusedLease } from '../contract/lease-store.js';
import type { LeaseTimes } from './lease-times.js';
import { getEndOfTrust } from './trust.js';
import type { AbortListener } from '../time/abort-listener.js';
import type { Linked, LinkedQueue } from '../time/linked-queue.js';
import type { Deadline } from '../time/deadline.js';
import type { Clock, Timer } from '../time/timers.js';
import type { AcquireRequest } from './lease-request.js';
import type { Lease } from './lease.js';
import type { OwnedKey } from './owned-key.js';

/** One caller's request to a store for a key, with its latest answer. A `Contender` may repeat the request. */
export class PendingAcquisition implements Caller, OwnedKey, Linked<PendingAcquisition> {
  previous: PendingAcquisition | undefined;
  next: PendingAcquisition | undefined;
  queue: LinkedQueue<PendingAcquisition> | undefined;
  readonly owner: string;
  readonly ttlMs: number;
  readonly deadline: Deadline;
  readonly clock: Clock;
  readonly isSingleAttempt: boolean;
  /** Time of the latest call of the store. Before the first call: the time of the caller's request. */
  requestedAt: number;
  /**
   * Time at which the request left for the server, as far as the store says. The lease is trusted from then, unless
   * `GrantedLease.sentAt` says otherwise.
   */
  sentAt: number;
  /** Answer to the latest request. `undefined`: no request was made yet. */
  answer: Promise<LeaseAttempt> | undefined;
  hasContenderEnded = false;
  wasWoken = false;
  onWake: (() => void) | undefined;
  unwatch: (() => void) | undefined;
  abortListener: AbortListener | undefined;
  deadlineTimer: Timer | undefined;

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
    this.isSingleAttempt = request.isSingleAttempt ?? deadline.passed;
    this.requestedAt = this.sentAt = this.clock.now();
  }

  watchForWakeUp(store: LeaseStore): void {
    if (this.isSingleAttempt || this.request.transferredLease) return;
    this.unwatch = store.watch?.(this.key, this.owner, () => {
      this.wasWoken = true;
      this.onWake?.();
    });
  }

  send(store: LeaseStore): Promise<LeaseAttempt> {
    this.requestedAt = this.sentAt = this.clock.now();
    try {
      this.answer = this.#sendTo(store);
    } catch (error) {
      this.answer = Promise.reject(error);
    }
    return this.answer;
  }

  onSend(): boolean {
    this.sentAt = this.clock.now();
    return !this.hasContenderEnded;
  }

  /** Returns whether no further attempt and no clean-up are needed after a refusal. */
  isFinalRefusal({ obstacle, staysInLine }: RefusedLease): boolean {
    const { transferredLease, inheritsQueueEntry } = this.request;
    if (transferredLease) return true;
    return this.isSingleAttempt && !obstacle && staysInLine !== true && inheritsQueueEntry !== true;
  }

  leaseTimesOf({ ttlMs = this.ttlMs, sentAt = this.sentAt }: GrantedLease): LeaseTimes {
    const { untrustedMs = 0 } = this.request;
    return { requestedTtlMs: this.ttlMs, serverTtlMs: ttlMs, trustedMs: ttlMs - untrustedMs, sentAt };
  }

  canTrust({ revoked }: GrantedLease, { sentAt, trustedMs }: LeaseTimes): boolean {
    return revoked?.aborted !== true && this.clock.now() < getEndOfTrust(sentAt, trustedMs);
  }

  #sendTo(store: LeaseStore): Promise<LeaseAttempt> {
    const { key, owner, ttlMs, request } = this;
    const { metadata, transferredLease } = request;
    if (!transferredLease) return store.tryAcquire(key, owner, ttlMs, metadata, this);
    assertCanAdopt(store, key);
    return store.adopt(key, transferredLease, { owner, ttlMs, metadata }, this);
  }
}

/** Returns whether the store has asked its server. A refusal with an `obstacle` says nothing about the server. */
export function isFromServer(attempt: LeaseAttempt): boolean {
  return attempt.acquired || attempt.obstacle === undefined;
}
