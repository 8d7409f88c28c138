import type { GrantedLease, LeaseStore } from '../contract/lease-store.js';
import type { Lease } from './lease.js';
import type { Clock } from '../time/timers.js';

/** A key that is, or may be, an owner's. */
export interface OwnedKey {
  readonly key: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly clock: Clock;
}

/**
 * Frees an owner in the background, whose request may have been carried out. `lastAttempt` has to be over first; where
 * that is all there was, and it was not sent, there is nothing to free.
 */
export type CleanUp = (owned: OwnedKey, lastAttempt?: Promise<unknown>) => void;

const nothing = (): void => undefined;

/** Keeps nothing of how it was asked for: there may be a hundred thousand of them. */
export class StoreLease implements Lease, OwnedKey {
  readonly key: string;
  readonly owner: string;
  readonly clock: Clock;
  readonly sentAt: number;
  /** For so long the server was asked. */
  readonly #askedTtlMs: number;
  readonly #granted: GrantedLease;

  constructor(
    private readonly store: LeaseStore,
    { key, owner, ttlMs, clock, sentAt }: OwnedKey & { readonly sentAt: number },
    granted: GrantedLease,
    readonly queued: boolean,
    private readonly cleanUp: CleanUp,
  ) {
    this.key = key;
    this.owner = owner;
    this.clock = clock;
    this.sentAt = granted.sentAt ?? sentAt;
    this.#askedTtlMs = ttlMs;
    this.#granted = granted;
  }

  get ttlMs(): number {
    return this.#granted.ttlMs ?? this.#askedTtlMs;
  }

  get fencingToken(): bigint {
    return this.#granted.fencingToken;
  }

  get revoked(): AbortSignal | undefined {
    return this.#granted.revoked;
  }

  get attachment(): unknown {
    return this.#granted.attachment;
  }

  get complete(): (() => Promise<void>) | undefined {
    return this.#granted.complete?.bind(this.#granted);
  }

  renew(): Promise<boolean> {
    return this.store.renew(this.key, this.owner, this.#askedTtlMs);
  }

  /** The caller is told of a failure at once; the key is not to stay closed for the rest of the TTL because of it. */
  release(): Promise<void> {
    return this.store.release(this.key, this.owner).then(nothing, (error: unknown) => {
      this.cleanUp(this);
      throw error;
    });
  }
}
