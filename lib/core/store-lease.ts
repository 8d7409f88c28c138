import type { GrantedLease, LeaseStore } from './lease-store.js';
import type { Lease, RenewalListener } from './lock-backend.js';
import { tell } from './renewal.js';
import type { Clock } from './timers.js';

/** A key that is, or may be, an owner's. */
export interface OwnedKey {
  readonly key: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly clock: Clock;
}

/**
 * Frees an owner in the background, whose request may have been carried out. `lastAttempt` has to be over first; where that is
 * all there was, and it was not sent, there is nothing to free.
 */
export type CleanUp = (owned: OwnedKey, lastAttempt?: Promise<unknown>) => void;

/** What is known of a lease when the store has answered. */
export interface NewLease {
  readonly granted: GrantedLease;
  readonly queued: boolean;
  readonly sentAt: number;
}

/** Keeps nothing of how it was asked for: there may be a hundred thousand of them. */
export class StoreLease implements Lease, OwnedKey {
  readonly key: string;
  readonly owner: string;
  readonly clock: Clock;
  /** What the server was asked for, and what it keeps to. */
  readonly #askedTtlMs: number;
  readonly ttlMs: number;
  readonly fencingToken: bigint;
  readonly queued: boolean;
  readonly sentAt: number;
  readonly revoked?: AbortSignal;
  readonly attachment?: unknown;
  readonly complete?: () => Promise<void>;
  #renewer: ((listener: RenewalListener) => void) | undefined;

  constructor(
    private readonly store: LeaseStore,
    { key, owner, ttlMs, clock }: OwnedKey,
    { granted, queued, sentAt }: NewLease,
    private readonly cleanUp: CleanUp,
  ) {
    this.key = key;
    this.owner = owner;
    this.clock = clock;
    this.#askedTtlMs = ttlMs;
    this.ttlMs = granted.ttlMs ?? ttlMs;
    this.fencingToken = granted.fencingToken;
    this.queued = queued;
    this.sentAt = granted.sentAt ?? sentAt;
    if (granted.revoked) this.revoked = granted.revoked;
    if (granted.attachment !== undefined) this.attachment = granted.attachment;
    if (granted.complete) this.complete = granted.complete.bind(granted);
  }

  renew(): Promise<boolean> {
    return this.store.renew(this.key, this.owner, this.#askedTtlMs);
  }

  renewFor(listener: RenewalListener): void {
    this.#renewer ??= this.store.renewerOf?.(this.key, this.owner, this.#askedTtlMs);
    if (this.#renewer) this.#renewer(listener);
    else tell(listener, this.renew());
  }

  /** The caller is told of a failure at once; the key is not to stay closed for the rest of the TTL because of it. */
  release(): Promise<void> {
    return this.store.release(this.key, this.owner).then(
      () => undefined,
      (error: unknown) => {
        this.cleanUp(this);
        throw error;
      },
    );
  }
}
