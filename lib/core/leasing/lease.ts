import type { GrantedLease, LeaseStore } from '../contract/lease-store.js';
import type { Clock, Timer } from '../time/timers.js';
import type { LeaseTimes } from './lease-times.js';
import type { Outcomes } from './outcomes.js';
import type { CleanUp, OwnedKey } from './owned-key.js';

/** Right to a key for a time, with the requests that renew and release it. */
export interface Lease extends Pick<GrantedLease, 'fencingToken' | 'attachment'> {
  readonly owner: string;
  /** Whether the lease was waited for in the server's queue: callers of this process soon let that queue go on. */
  readonly queued?: boolean;
  readonly times: LeaseTimes;
  /** See `GrantedLease`. */
  readonly revoked?: AbortSignal | undefined;
  /** See `GrantedLease`. */
  readonly complete?: (() => Promise<void>) | undefined;
  /** Resolves to whether the owner has the key for another `keptMs` from this call. A rejection is no answer: renew again. */
  renew(): Promise<boolean>;
  release(): Promise<void>;
  /** Keeps the key closed for another `ms`, after which the lease ends by itself where the store has no sessions. */
  keepFor(ms: number): Promise<void>;
  /**
   * Called when the time of a lease is over that its session would keep. Returns whether the caller takes care of the
   * lease; otherwise it releases itself.
   */
  onEnd?: () => boolean;
  /** Leaves the release to the caller: the lease no longer releases itself. */
  leaveOpen(): void;
}

/** Returns whether the leases of a store end with a session that they share, and not each by itself. */
export function hasSessions({ traits }: Pick<LeaseStore, 'traits'>): boolean {
  return (traits?.endsWith ?? 'ttl') !== 'ttl';
}

/** Parts of a backend that a lease needs. */
interface Leasing {
  readonly store: LeaseStore;
  readonly outcomes: Outcomes;
  readonly cleanUp: CleanUp;
}

const doNothing = (): void => undefined;

/** Lease of a store. There may be a hundred thousand of them, so it keeps nothing of the request that it answers. */
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
  /** Timer that releases a lease which nobody renews, and which its session would keep. */
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
      // A store with sessions may have answered without its server.
      if (!hasSessions(store)) outcomes.noteCarriedOut('keep');
      return ours;
    } catch (error) {
      outcomes.noteFailure(error, 'keep', this);
      throw error;
    }
  }

  /** Releases the key. A failure is told at once, and the release is repeated in the background until the TTL ends. */
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
      else if (this.onEnd?.() !== true) this.release().catch(doNothing);
    };
    this.#end = this.clock.schedule(leftMs, onTime, { background: true });
  }
}
