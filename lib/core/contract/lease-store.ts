import type { Deadline } from '../time/deadline.js';
import type { HealthSource } from './health.js';
import type { Holder, HolderMetadata } from './holder.js';
import type { LeaseState } from './key-state.js';

/**
 * Guarantee that a granted key has one holder. `consensus`: a majority of servers stores the grant. `durable`: one
 * server stores it on disk. `best-effort`: a restart, an eviction or a failover may let a second holder in, and only
 * the fencing token protects then.
 */
export type Guarantee = 'consensus' | 'durable' | 'best-effort';

/** Limits of the `ttlMs` that a backend can keep. */
export interface TtlLimits {
  readonly minMs: number;
  readonly maxMs: number;
}

/** Properties of a store's server that the core needs. A store leaves out those with the default value. */
export interface StoreTraits {
  /** Limits of `ttlMs`. Other values are refused by a `LockConfigurationError`. @default no limits */
  readonly ttlLimits?: TtlLimits;
  /** Whether requests for the same key are carried out in the order of the calls. @default false */
  readonly keepsOrder?: boolean;
  /**
   * Event that ends the leases of a crashed holder. `ttl`: each lease ends with its own TTL. `session`: all leases end
   * with the session of the process, and the core releases a single lease that is not renewed. `connection`: like
   * `session`, but the session ends at once with the connection.
   * @default 'ttl'
   */
  readonly endsWith?: 'ttl' | 'session' | 'connection';
  /**
   * Largest `limit` of permits, for a store that keeps several holders of a key. Owners' names contain the claims, see
   * `parseClaim`. A claim holds the key while `fits` is true for the claims before it.
   * @default one holder a key; shared modes and limits are refused
   */
  readonly maxPermits?: number;
  /**
   * Whether the server compares owners in one step and writes in the next, so that two owners may be granted a key for
   * a moment. @default false
   */
  readonly writesWithoutOwnerCheck?: boolean;
  /**
   * Milliseconds that each waiter of a process adds to the pause between two attempts of every waiter, up to five
   * seconds in all. The longer pause leaves the server time for the requests of holders.
   * @default 0
   */
  readonly pollMsPerWaiter?: number;
}

/**
 * Interface of the core to a server that can "write if absent, with a time to live", or the equivalent. `LockBackend`
 * adds waiting, and handles lost replies, late replies and cancellations.
 */
export interface LeaseStore {
  /** Name in errors, events and metrics: `redis`, `zookeeper`. */
  readonly name: string;
  readonly guarantee: Guarantee;
  readonly traits?: StoreTraits;
  /**
   * Checks settings on the server, such as whether a table exists. Called once when an application starts; the other
   * methods must work without this call. Must settle within a bounded time.
   * @throws LockConfigurationError for a wrong setting; any other error when the server cannot answer now
   */
  start?(): Promise<void>;
  /**
   * Grants the key to `owner` if it is free, in one atomic step. A second call by the holder succeeds, with a full
   * `ttlMs` and the same token or a greater one. Must settle within a bounded time, also on a server that does not
   * answer.
   */
  tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    caller?: Caller,
  ): Promise<LeaseAttempt>;
  /** Extends the lease of `owner` to another `ttlMs`. Resolves to whether `owner` still had it. Never grants anew. */
  renew(key: string, owner: string, ttlMs: number): Promise<boolean>;
  /**
   * Grants the key to the owner of `adopted` if the owner of `transferred` has it, and ends that lease, in one atomic
   * step. A second call succeeds, with a full `ttlMs`. Never grants a key that is free. @default refused
   */
  adopt?(key: string, transferred: TransferredLease, adopted: AdoptedLease, caller?: Caller): Promise<LeaseAttempt>;
  /**
   * Keeps the key of `owner` for `ttlMs`, even if this process ends, so that any process can call `adopt`. Resolves to
   * whether `owner` had the key. Afterwards this process sends no request of `owner`, except a release.
   * @default `renew`
   */
  passOn?(key: string, owner: string, ttlMs: number): Promise<boolean>;
  /** Releases the key and resolves to whether `owner` had it. A store with a queue removes `owner` from it, too. */
  release(key: string, owner: string): Promise<boolean>;
  /**
   * Resolves to whether `owner` has `key` now, by one consistent reading that changes nothing. Checks of sequencers, and
   * of losses that the store reported, call this method. A sequencer comes from an untrusted sender, so that both
   * arguments may be any text.
   */
  isHeldBy?(key: string, owner: string): Promise<boolean>;
  /**
   * Resolves to the holders of `key` and its waiters, by one reading that changes nothing. Without this method
   * `LockService.look` and readings of a leader are refused.
   */
  look?(key: string): Promise<LeaseState>;
  /**
   * Takes `key` from `owner`, in any process, wakes waiters, and resolves to whether `owner` had the key. Later calls
   * of `renew` by that owner resolve to `false`.
   * @default `release`, where leases end with their TTL alone; else eviction is refused
   */
  evict?(key: string, owner: string): Promise<boolean>;
  /** Lists the held keys that begin with `prefix`, in any order, page by page. @default refused */
  keys?(prefix: string): AsyncIterable<readonly string[]>;
  /**
   * Calls `wake` when `key` may have become free for `owner`, until the returned function is called. A wake-up is only
   * a hint: a lost one costs latency, never safety. In a store with a queue, `tryAcquire` adds watched owners to the
   * queue.
   */
  watch?(key: string, owner: string, wake: () => void): () => void;
  /**
   * Calls `onChange` with a held key that may have been taken from its holder, or with `undefined` if that may be any
   * key. The core then calls `isHeldBy` or renews. A store that sets `GrantedLease.revoked` does not need this.
   */
  watchLeases?(onChange: (key: string | undefined) => void): LeaseWatch;
  /** Closes all sessions, subscriptions and clients that the store opened, never a client of the user. Idempotent. */
  close(): Promise<void>;
  readonly health?: HealthSource;
}

/** Caller that asks for a lease, for stores whose requests may wait before they are sent. */
export interface Caller {
  /** Time until which the caller waits, for servers that can wait. A deadline in the past means one attempt. */
  readonly deadline: Deadline;
  /**
   * Called by the store right before it sends the request, because the lease is trusted from that time. Returns `false`
   * if the caller has given up; the store then sends nothing and rejects with `NotSentError`.
   */
  onSend(): boolean;
}

/** Watch over the leases of a store. */
export interface LeaseWatch {
  /**
   * Whether the store watches an exclusive lease only after its first renewal. The core then renews the lease soon
   * after the grant.
   */
  readonly needsEarlyRenewal: boolean;
  /** Ends the watch, for a store that outlives the service. Idempotent. */
  end?(): void;
}

/** Lease that another process passes on: see `LockHandle.transfer`. */
export interface TransferredLease {
  readonly owner: string;
  /** Token of the grant, without the bits for hand-offs. The next owner's lease has the same token. */
  readonly fencingToken: bigint;
}

/** Lease that the adopting process asks for. */
export interface AdoptedLease {
  readonly owner: string;
  readonly ttlMs: number;
  readonly metadata: HolderMetadata;
}

export type LeaseAttempt = GrantedLease | RefusedLease;

/** Answer that the owner has the key. */
export interface GrantedLease {
  readonly acquired: true;
  /** Number below 2^52 that grows with every acquisition of the key. The core appends eleven bits for hand-offs. */
  readonly fencingToken: bigint;
  /** Milliseconds for which the lease lasts after each renewal. @default the `ttlMs` that was asked for */
  readonly ttlMs?: number;
  /** Time from which the lease lasts, by the monotonic clock. @default the time at which the request was sent */
  readonly sentAt?: number;
  /** Signal that aborts when the server ends the lease, for example because its session expired. */
  readonly revoked?: AbortSignal;
  /** Object for the holder's work, such as the transaction that has the lock. */
  readonly attachment?: unknown;
  /**
   * Commits what the work did through `attachment`, before the release. A rejection fails the work. A lease with this
   * method is never handed to the next caller.
   */
  complete?(): Promise<void>;
}

/** Answer that the key is held. */
export interface RefusedLease {
  readonly acquired: false;
  /** Milliseconds until the holder's lease ends, or `null` when the store does not know. */
  readonly retryAfterMs: number | null;
  readonly holder?: Holder;
  /**
   * The reason why the store could not ask its server yet for a watched owner, such as a pool with no free connection.
   * The store asks and wakes the caller as soon as it can. At the deadline `obstacle` becomes the error or its cause.
   */
  readonly obstacle?: Error;
  /** Whether the owner is in the store's queue without a `watch`, and therefore has to be released. */
  readonly staysInLine?: boolean;
}
