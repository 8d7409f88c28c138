import type { Deadline } from '../time/deadline.js';
import type { Asker, LeaseAttempt, LeaseStore } from '../contract/lease-store.js';
import type { AcquireRequest } from './lease-request.js';

/** A store that answers does so within this time. */
export const SILENCE_MS = 100;

/** One question to a store, asked when it is made. */
export class Question implements Asker {
  readonly askedAt: number;
  /** The lease counts from here. */
  sentAt: number;
  /** Nobody waits for the answer any more. */
  abandoned = false;
  readonly answer: Promise<LeaseAttempt>;

  constructor(
    store: LeaseStore,
    key: string,
    private readonly request: AcquireRequest,
  ) {
    const { owner, ttlMs, metadata, deadline } = request;
    this.askedAt = deadline.clock.now();
    this.sentAt = this.askedAt;
    this.answer = store.tryAcquire(key, owner, ttlMs, metadata, this);
  }

  get deadline(): Deadline {
    return this.request.deadline;
  }

  onSend(): boolean {
    this.sentAt = this.request.deadline.clock.now();
    return !this.abandoned;
  }
}

/** A question that is open still, and what has been begun for it. A contender goes on with it. */
export interface OpenQuestion {
  readonly question: Question;
  /** The caller does not wait. */
  readonly once: boolean;
  readonly unwatch: (() => void) | undefined;
  readonly woken: boolean;
  onWake: (() => void) | undefined;
}
