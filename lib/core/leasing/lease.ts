import type { GrantedLease, LeaseStore } from '../contract/lease-store.js';
import type { Clock, Timer } from '../time/timers.js';
import type { LeaseTimes } from './lease-times.js';
import type { Outcomes } from './outcomes.js';
import type { CleanUp, OwnedKey } from './owned-key.js';

/** A time-bounded right to a key: what the store granted, and how to keep it and to give it back. */
export interface Lease extends Pick<GrantedLease, 'fencingToken' | 'attachment'> {
  readonly owner: string;
  /** It was waited for in the backend's line, where others may stand: callers here soon let that line go on. */
  readonly queued?: boolean;
  readonly times: LeaseTimes;
  /** See `GrantedLease`. */
  readonly revoked?: AbortSignal | undefined;
  /** See `GrantedLease`. */
  readonly complete?: (() => Promise<void>) | undefined;
  /** Still ours, for another `keptMs` from when this was called? Rejecting is no answer, and is asked again. */
  renew(): Promise<boolean>;
  release(): Promise<void>;
  /** The key stays closed for another `ms`, and then ends by itself where its store has no sessions. */
  keepFor(ms: number): Promise<void>;
  /**
   * Called when the time of a lease is over that its session would keep: whether somebody has decided what becomes of it.
   * If not, the lease releases itself.
   */
  onEnd?: () => boolean;
  /** The lease does not release itself any more: the caller will, when it is time. */
  leaveOpen(): void;
}

/** Whether the leases of `store` outlive their time, because something that they share lives on. */
export function hasSessions({ traits }: Pick<LeaseStore, 'traits'>): boolean {
  return (traits?.endsWith ?? 'ttl') !== 'ttl';
}

/** The parts of a backend that a lease needs. */
interface Leasing {
  readonly store: LeaseStore;
  readonly outcomes: Outcomes;
  readonly cleanUp: CleanUp;
}

const nothing = (): void => undefined;

/** Keeps nothing of how it was asked for: there may be a hundred thousand of them. */
export class StoreLease implements Lease, OwnedKey {
  readonly key: string;
  readonly owner: string;
  readonly clock: Clock;
  readonly fencingToken: bigint;
  readonly revoked: AbortSignal | undefined;
  readonly attachment: unknown;
  readonly complete: (() => Promise<void>) | undefined;
  onEnd?: () => boolean;
  #renewedAt: number;
  /** Gives a lease back that nobody renews, and that its session would keep. */
  #end: Timer | undefined;

  constructor(
    private readonly leasing: Leasing,
    { key, owner, clock }: Pick<OwnedKey, 'key' | 'owner' | 'clock'>,
    granted: GrantedLease,
    readonly times: LeaseTimes,
    readonly queued: boolean,
  ) {
    this.key = key;
    this.owner = owner;
    this.clock = clock;
    this.#renewedAt = times.sentAt;
    this.fencingToken = granted.fencingToken;
    this.revoked = granted.revoked;
    this.attachment = granted.attachment;
    this.complete = granted.complete?.bind(granted);
    if (hasSessions(leasing.store)) this.#watchEnd();
  }

  /** Time for which the owner may have the key, as clean-ups need it. */
  get ttlMs(): number {
    return this.times.keptMs;
  }

  async renew(): Promise<boolean> {
    const { key, owner, clock, leasing } = this;
    const { store, outcomes } = leasing;
    const askedAt = clock.now();
    try {
      const ours = await store.renew(key, owner, this.times.askedMs);
      if (ours) this.#renewedAt = askedAt;
      // A store with sessions may have answered from memory.
      if (!hasSessions(store)) outcomes.noteCarriedOut('keep');
      return ours;
    } catch (error) {
      outcomes.noteFailure(error, 'keep', this);
      throw error;
    }
  }

  /** The caller is told of a failure at once; the key is not to stay closed for the rest of the TTL because of it. */
  release(): Promise<void> {
    this.leaveOpen();
    const { key, owner, leasing } = this;
    const { store, outcomes, cleanUp } = leasing;
    const onFailure = (error: unknown): never => {
      outcomes.noteFailure(error, 'keep', this);
      cleanUp(this);
      throw error;
    };
    try {
      return store.release(key, owner).then(() => outcomes.noteCarriedOut('keep'), onFailure);
    } catch (error) {
      return Promise.reject(error).catch(onFailure);
    }
  }

  leaveOpen(): void {
    this.#end?.cancel();
  }

  async keepFor(ms: number): Promise<void> {
    this.leaveOpen();
    const { key, owner } = this;
    const { store } = this.leasing;
    if (!hasSessions(store)) await store.renew(key, owner, Math.max(ms, store.traits?.ttlLimits?.minMs ?? 0));
  }

  #watchEnd(): void {
    const leftMs = this.#renewedAt + this.times.keptMs - this.clock.now();
    const onTime = (): void => {
      if (this.clock.now() < this.#renewedAt + this.times.keptMs) this.#watchEnd();
      else if (this.onEnd?.() !== true) this.release().catch(nothing);
    };
    this.#end = this.clock.schedule(leftMs, onTime, { background: true });
  }
}
