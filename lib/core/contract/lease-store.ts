import type { Deadline } from '../time/deadline.js';
import type { HealthSource } from './health.js';
import type { Holder, HolderMetadata } from './holder.js';
import type { LeaseState } from './key-state.js';

/**
 * Promise that a holder may rely on. `consensus`: a majority of servers remembers a grant. `durable`: one server's disk
 * does. `best-effort`: a restart, an eviction or a failover may let a second holder in, and only the fencing token
 * protects then.
 */
export type Guarantee = 'consensus' | 'durable' | 'best-effort';

/** Limits of the `ttlMs` that a backend can keep. */
export interface TtlLimits {
  readonly minMs: number;
  readonly maxMs: number;
}

/** Facts about a store's server that the core needs. A store leaves out those with the default value. */
export interface StoreTraits {
  /** Limits of `ttlMs`. Other values are refused where they are given, by `LockConfigurationError`. @default no limits */
  readonly ttlLimits?: TtlLimits;
  /** Whether requests for the same key are carried out in the order of the calls. @default false */
  readonly keepsOrder?: boolean;
  /**
   * Event that ends the lease of a holder that renews it no more. `session`: the end of its process' session, which all its
   * leases share. The core releases a single lease that is not renewed. `connection`: the same, and a crash ends it at
   * once.
   * @default 'ttl', each lease by itself
   */
  readonly endsWith?: 'ttl' | 'session' | 'connection';
  /**
   * Largest `limit` of permits. With it the store keeps several holders of a key, by the claims that the owners' names tell,
   * see `claimOf`. A claim holds the key while it fits behind the claims before it, see `fits`.
   * @default one holder a key; more are refused where they are asked for
   */
  readonly maxPermits?: number;
  /**
   * Whether owners are compared in one step and written in the next: for a moment two may be told that a key is theirs.
   * @default false
   */
  readonly writesUncompared?: boolean;
  /**
   * Milliseconds that each waiter adds to the pause of all waiters between two questions, up to five seconds. A store that
   * many ask has to answer the holders of its keys, too. @default 0
   */
  readonly pollMsPerWaiter?: number;
}

/**
 * All that the core asks of a server: "write if absent, with a time to live", or its equivalent. `LockBackend` adds waiting,
 * lost replies, late replies and giving up.
 */
export interface LeaseStore {
  /** Name in errors, events and metrics: `redis`, `zookeeper`. */
  readonly name: string;
  readonly guarantee: Guarantee;
  readonly traits?: StoreTraits;
  /**
   * Looks for what can never work, such as a table that is missing. Called once when an application starts, and nothing
   * depends on it. Must settle within a bounded time.
   * @throws LockConfigurationError; any other error when the backend cannot answer now, which `health` shows
   */
  start?(): Promise<void>;
  /**
   * Grants the key to `owner` if it is free, in one atomic step. Asking again with the same owner succeeds, with a full
   * `ttlMs` and the same token, or a greater one. Must settle within a
   * bounded time, also on a server that does not answer.
   */
  tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata, asker?: Asker): Promise<LeaseAttempt>;
  /** Resolves to whether `owner` has the key for another `ttlMs`. Never grants it anew. */
  renew(key: string, owner: string, ttlMs: number): Promise<boolean>;
  /** Releases the key and resolves to whether it was `owner`'s. A store that queues takes `owner` out of the queue, too. */
  release(key: string, owner: string): Promise<boolean>;
  /**
   * Resolves to whether the server keeps `key` for `owner` now, by one reading that changes nothing and sees all earlier
   * decisions. Sequencers need it; they come from outside, so both arguments may be anything.
   */
  isHeldBy?(key: string, owner: string): Promise<boolean>;
  /**
   * Resolves to the holders of `key` and its waiters, by one reading that changes nothing. Operators and readers of a
   * leadership need it; without it both are refused.
   */
  look?(key: string): Promise<LeaseState>;
  /**
   * Takes `key` from `owner`, in whichever process, and resolves to whether it was `owner`'s. From now on `renew` answers
   * `false` to that owner. Waiters are woken.
   * @default `release`, where leases end with their TTL alone; else eviction is refused
   */
  evict?(key: string, owner: string): Promise<boolean>;
  /** Lists the held keys that begin with `prefix`, in any order, page by page. @default refused */
  keys?(prefix: string): AsyncIterable<readonly string[]>;
  /**
   * Calls `wake` when `key` may have become free for `owner`, until the returned function is called. A wake-up is only a
   * hint: a lost one costs latency, never safety. A store that queues lets watched owners queue in `tryAcquire`.
   */
  watch?(key: string, owner: string, wake: () => void): () => void;
  /**
   * Calls `onChange` with a held key that may have been taken away by somebody else, or with `undefined` for any held key.
   * That is a hint: the core then asks `isHeldBy`, or renews. A store whose leases tell by `revoked` needs none.
   */
  watchLeases?(onChange: (key: string | undefined) => void): LeaseWatch;
  /** Closes the sessions, subscriptions and clients that it opened, never a client that it was given. Idempotent. */
  close(): Promise<void>;
  readonly health?: HealthSource;
}

/** Caller who asks for a lease, for stores whose requests wait before they are sent. */
export interface Asker {
  /** Time until which the caller waits, for servers that bound a wait. Past: it does not wait. */
  readonly deadline: Deadline;
  /**
   * Called by the store right before it sends the request: the lease is trusted from then. `false`: the caller has given
   * up, and the store rejects with `NotSentError` instead.
   */
  onSend(): boolean;
}

/** Watch over the leases of a store. */
export interface LeaseWatch {
  /** Whether the store watches an exclusive lease from its first renewal on. The core then sends that one soon after the grant. */
  readonly isActive: boolean;
  /** Ends the watch, for a store that outlives the service. Idempotent. */
  end?(): void;
}

export type LeaseAttempt = GrantedLease | RefusedLease;

/** Answer that the key is the owner's. */
export interface GrantedLease {
  readonly acquired: true;
  /** Number that grows with every acquisition of the key, below 2^52: the core appends eleven bits for hand-offs. */
  readonly fencingToken: bigint;
  /** Milliseconds for which the lease lasts after each renewal. @default the `ttlMs` that was asked for */
  readonly ttlMs?: number;
  /** Time from which it lasts, by the monotonic clock. @default when the request was sent */
  readonly sentAt?: number;
  /** Signal that aborts when the server ends the lease: its session expired, its node was deleted. */
  readonly revoked?: AbortSignal;
  /** Object for the holder's work, such as the transaction that has the lock. */
  readonly attachment?: unknown;
  /**
   * Commits what the work did through `attachment`, before the release. A rejection fails the work. A lease with this
   * method is never handed on to the next caller.
   */
  complete?(): Promise<void>;
}

/** Answer that the key is held. */
export interface RefusedLease {
  readonly acquired: false;
  /** Milliseconds until the holder's lease ends, when the store knows it. */
  readonly retryAfterMs: number | null;
  readonly holder?: Holder;
  /**
   * Reason why the store could not ask yet for a watched owner, such as a pool with no free connection. The store asks as
   * soon as it can and wakes the caller, who waits on. A caller whose time is up is told this reason.
   */
  readonly obstacle?: Error;
  /** Whether the owner stays in the store's queue though it does not watch, and has to be released. */
  readonly staysInLine?: boolean;
}
