import type { GrantedLease, LeaseStore } from '../contract/lease-store.js';
import type { Clock, Timer } from '../time/timers.js';
import type { LeaseTimes } from './lease-times.js';
import type { ObservedHealth } from './observed-health.js';
import type { ReleaseInBackground, OwnedKey } from './owned-key.js';

export interface Lease extends Pick<GrantedLease, 'fencingToken' | 'attachment'> {
  readonly owner: string;
  /** Whether the caller waited in the server's queue. Hand-offs of such a lease end sooner. */
  readonly wasQueued?: boolean;
  readonly times: LeaseTimes;
  readonly revoked?: AbortSignal | undefined;
  readonly complete?: (() => Promise<void>) | undefined;
  /**
   * Resolves to whether the owner has the key for another `serverTtlMs` from this call. After a rejection the
   * answer is unknown, and the caller should renew again.
   */
  renew(): Promise<boolean>;
  release(): Promise<void>;
  /** Keeps the key closed for `ms` without renewals. In a store with sessions the lease lasts until its release. */
  keepClosedFor(ms: number): Promise<void>;
  /** Keeps the key for `ms`, for an adoption, and resolves to whether the owner still had it. */
  passOn(ms: number): Promise<boolean>;
  /**
   * Called when the lease was not renewed in time, but its session still keeps it. Returns whether the listener
   * releases the lease; otherwise the lease releases itself.
   */
  onNotRenewed?: () => boolean;
  /** Cancels the timer that calls `onNotRenewed`. */
  cancelAutoRelease(): void;
}

/** Returns whether the leases of a store end with a shared session, and not each with its own TTL. */
export function hasSessions({ traits }: Pick<LeaseStore, 'traits'>): boolean {
  return (traits?.endsWith ?? 'ttl') !== 'ttl';
}

interface LeaseContext {
  readonly store: LeaseStore;
  readonly observedHealth: ObservedHealth;
  readonly releaseInBackground: ReleaseInBackground;
}

const doNothing = (): void => undefined;

/** Lease that keeps no reference to its request, because a process may have a hundred thousand leases. */
export class StoreLease implements Lease, OwnedKey {
  readonly key: string;
  readonly owner: string;
  readonly clock: Clock;
  readonly fencingToken: bigint;
  readonly revoked: AbortSignal | undefined;
  readonly attachment: unknown;
  readonly complete: (() => Promise<void>) | undefined;
  onNotRenewed?: () => boolean;
  #renewedAt: number;
  #passedOnMs = 0;
  /** Timer that releases a lease which is not renewed in time, where the session would keep it. */
  #autoReleaseTimer: Timer | undefined;

  constructor(
    private readonly context: LeaseContext,
    { key, owner, clock }: Pick<OwnedKey, 'key' | 'owner' | 'clock'>,
    granted: GrantedLease,
    readonly times: LeaseTimes,
    readonly wasQueued: boolean,
  ) {
    this.key = key;
    this.owner = owner;
    this.clock = clock;
    this.#renewedAt = times.sentAt;
    this.fencingToken = granted.fencingToken;
    this.revoked = granted.revoked;
    this.attachment = granted.attachment;
    this.complete = granted.complete?.bind(granted);
    if (hasSessions(context.store)) this.#scheduleAutoRelease();
  }

  /** Maximum time for which the server may keep the lease without a further request. */
  get ttlMs(): number {
    return Math.max(this.times.serverTtlMs, this.#passedOnMs);
  }

  async renew(): Promise<boolean> {
    const { key, owner, clock, context } = this;
    const sentAt = clock.now();
    try {
      const isHeld = await context.store.renew(key, owner, this.times.requestedTtlMs);
      if (isHeld) this.#renewedAt = sentAt;
      this.#noteAnswer();
      return isHeld;
    } catch (error) {
      this.#noteFailure(error);
      throw error;
    }
  }

  /** Releases the key. Rejects at the first failure, and repeats the release in the background until the TTL ends. */
  release(): Promise<void> {
    this.cancelAutoRelease();
    const { key, owner, context } = this;
    const { store, observedHealth, releaseInBackground } = context;
    const onFailure = (error: unknown): never => {
      observedHealth.noteFailure(error, 'renewOrRelease', this);
      releaseInBackground(this);
      throw error;
    };
    try {
      return store.release(key, owner).then(() => observedHealth.noteCarriedOut('renewOrRelease'), onFailure);
    } catch (error) {
      return Promise.reject(error).catch(onFailure);
    }
  }

  cancelAutoRelease(): void {
    this.#autoReleaseTimer?.cancel();
  }

  async keepClosedFor(ms: number): Promise<void> {
    this.cancelAutoRelease();
    const { key, owner } = this;
    const { store } = this.context;
    if (!hasSessions(store)) await store.renew(key, owner, Math.max(ms, store.traits?.ttlLimits?.minMs ?? 0));
  }

  async passOn(ms: number): Promise<boolean> {
    this.cancelAutoRelease();
    const { key, owner, context } = this;
    const { store } = context;
    this.#passedOnMs = ms;
    try {
      const wasHeld = await (store.passOn ? store.passOn(key, owner, ms) : store.renew(key, owner, ms));
      this.#noteAnswer();
      return wasHeld;
    } catch (error) {
      this.#noteFailure(error);
      throw error;
    }
  }

  /** Notes an answer for the health, except in a store with sessions, which may answer without asking its server. */
  #noteAnswer(): void {
    const { store, observedHealth } = this.context;
    if (!hasSessions(store)) observedHealth.noteCarriedOut('renewOrRelease');
  }

  #noteFailure(error: unknown): void {
    this.context.observedHealth.noteFailure(error, 'renewOrRelease', this);
  }

  #scheduleAutoRelease(): void {
    const leftMs = this.#renewedAt + this.times.serverTtlMs - this.clock.now();
    const onTtlEnd = (): void => {
      if (this.clock.now() < this.#renewedAt + this.times.serverTtlMs) this.#scheduleAutoRelease();
      else if (this.onNotRenewed?.() !== true) this.release().catch(doNothing);
    };
    this.#autoReleaseTimer = this.clock.schedule(leftMs, onTtlEnd, { background: true });
  }
}
