import type { LeaseStore } from './lease-store.js';
import type { Lease } from './lock-backend.js';
import type { Clock } from './timers.js';

/** A key that is, or may be, an owner's. */
export interface OwnedKey {
  readonly key: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly clock: Clock;
}

/** What is known of a lease when the store has answered. */
export interface NewLease {
  readonly fencingToken: bigint;
  readonly queued: boolean;
  readonly sentAt: number;
}

/** Keeps nothing of how it was asked for: there may be a hundred thousand of them. */
export class StoreLease implements Lease, OwnedKey {
  readonly key: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly clock: Clock;
  readonly fencingToken: bigint;
  readonly queued: boolean;
  readonly tokenStep: number;
  readonly sentAt: number;

  constructor(
    private readonly store: LeaseStore,
    { key, owner, ttlMs, clock }: OwnedKey,
    { fencingToken, queued, sentAt }: NewLease,
    /** Frees the owner in the background, once its lease could not be given back. */
    private readonly cleanUp: (owned: OwnedKey) => void,
  ) {
    this.key = key;
    this.owner = owner;
    this.ttlMs = ttlMs;
    this.clock = clock;
    this.fencingToken = fencingToken;
    this.queued = queued;
    this.tokenStep = store.tokenStep ?? 1;
    this.sentAt = sentAt;
  }

  renew(): Promise<boolean> {
    return this.store.renew(this.key, this.owner, this.ttlMs);
  }

  /** The caller is told of a failure at once; the key is not to stay closed for the rest of the TTL because of it. */
  async release(): Promise<void> {
    try {
      await this.store.release(this.key, this.owner);
    } catch (error) {
      this.cleanUp(this);
      throw error;
    }
  }
}
