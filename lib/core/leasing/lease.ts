import type { GrantedLease, LeaseStore } from '../contract/lease-store.js';
import type { Clock, Timer } from '../time/timers.js';

/** A time-bounded right to a key: what the store granted, and how to keep it and to give it back. */
export interface Lease extends Pick<GrantedLease, 'fencingToken' | 'attachment'> {
  readonly owner: string;
  /** It was waited for in the backend's line, where others may stand: callers here soon let that line go on. */
  readonly queued?: boolean;
  /** The true one: a session backend reports the session's. */
  readonly ttlMs: number;
  /** `clock.now()` before the request that this lease answers was sent. */
  readonly sentAt: number;
  /** See `GrantedLease`. */
  readonly revoked?: AbortSignal | undefined;
  /** See `GrantedLease`. */
  readonly complete?: (() => Promise<void>) | undefined;
  /** Still ours, for another `ttlMs` from when this was called? Rejecting is no answer, and is asked again. */
  renew(): Promise<boolean>;
  release(): Promise<void>;
  /** The key stays closed for another `ms`, and then ends by itself where its store has no sessions. */
  keepFor(ms: number): Promise<void>;
}

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

/** Whether the leases of `store` outlive their time, because something that they share lives on. */
export function hasSessions({ endsWith = 'ttl' }: Pick<LeaseStore, 'endsWith'>): boolean {
  return endsWith !== 'ttl';
}

const nothing = (): void => undefined;

/** Keeps nothing of how it was asked for: there may be a hundred thousand of them. */
export class StoreLease implements Lease, OwnedKey {
  readonly key: string;
  readonly owner: string;
  readonly clock: Clock;
  readonly ttlMs: number;
  readonly sentAt: number;
  readonly fencingToken: bigint;
  readonly revoked: AbortSignal | undefined;
  readonly attachment: unknown;
  readonly complete: (() => Promise<void>) | undefined;
  /** For so long the server was asked. */
  readonly #askedTtlMs: number;
  #renewedAt: number;
  /** Gives a lease back that nobody renews, and that its session would keep. */
  #end: Timer | undefined;

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
    this.ttlMs = granted.ttlMs ?? ttlMs;
    this.sentAt = this.#renewedAt = granted.sentAt ?? sentAt;
    this.fencingToken = granted.fencingToken;
    this.revoked = granted.revoked;
    this.attachment = granted.attachment;
    this.complete = granted.complete?.bind(granted);
    this.#askedTtlMs = ttlMs;
    if (hasSessions(store)) this.#watchEnd();
  }

  async renew(): Promise<boolean> {
    const askedAt = this.clock.now();
    const ours = await this.store.renew(this.key, this.owner, this.#askedTtlMs);
    if (ours) this.#renewedAt = askedAt;
    return ours;
  }

  /** The caller is told of a failure at once; the key is not to stay closed for the rest of the TTL because of it. */
  release(): Promise<void> {
    this.#end?.cancel();
    return this.store.release(this.key, this.owner).then(nothing, (error: unknown) => {
      this.cleanUp(this);
      throw error;
    });
  }

  async keepFor(ms: number): Promise<void> {
    this.#end?.cancel();
    const { key, owner, store } = this;
    if (!hasSessions(store)) await store.renew(key, owner, Math.max(ms, store.ttlLimits?.minMs ?? 0));
  }

  #watchEnd(): void {
    const leftMs = this.#renewedAt + this.ttlMs - this.clock.now();
    const onTime = (): void => {
      if (this.clock.now() < this.#renewedAt + this.ttlMs) this.#watchEnd();
      else this.release().catch(nothing);
    };
    this.#end = this.clock.schedule(leftMs, onTime, { background: true });
  }
}
