import type { Deadline } from '../time/deadline.js';
import type { HealthSource } from './health.js';
import type { Holder, HolderMetadata } from './holder.js';
import type { LeaseState } from './key-state.js';

/**
 * The promise that a holder may rely on. `consensus`: a majority of servers remembers it. `durable`: one server's disk
 * does. `best-effort`: a restart, an eviction or a failover may let a second holder in; only the fencing token protects
 * then.
 */
export type Guarantee = 'consensus' | 'durable' | 'best-effort';

/** The leases that a backend can keep, as `ttlMs`. */
export interface TtlLimits {
  readonly minMs: number;
  readonly maxMs: number;
}

/** What the core has to know of a store's server. A store leaves out what is as the default says. */
export interface StoreTraits {
  /** Limits of `ttlMs`. Other values are refused where they are given, by `LockConfigurationError`. @default no limits */
  readonly ttlLimits?: TtlLimits;
  /** Whether requests for the same key are carried out in the order of the calls. @default false */
  readonly keepsOrder?: boolean;
  /**
   * What ends the lease of a holder that renews it no more. `session`: the end of its process' session, which all its
   * leases share; a single lease need not wait for that, because the core releases what nobody renews. `connection`: the
   * same, and a crash ends it at once.
   * @default 'ttl', each lease by itself
   */
  readonly endsWith?: 'ttl' | 'session' | 'connection';
  /**
   * Largest `limit` of permits. With it the store keeps several holders of a key, by what each owner's name says of its
   * claim, see `claimOf`: a claim holds the key while the claims before it in line, and it, are no more than its limit.
   * @default one holder a key; more are refused where they are asked for
   */
  readonly maxPermits?: number;
  /**
   * Whether owners are compared in one step and written in the next: for a moment two may be told that a key is theirs.
   * @default false
   */
  readonly writesUncompared?: boolean;
  /**
   * Milliseconds that each waiting caller adds to the pause of all of them between two questions, up to five seconds: a
   * store that many ask has to answer the holders of its keys, too. @default 0
   */
  readonly pollMsPerWaiter?: number;
}

/**
 * All that the core asks of a server: "write if absent, with a time to live", or what comes to the same. `LockBackend`
 * adds the rest: waiting, lost replies, late replies and giving up.
 */
export interface LeaseStore {
  /** Shown in errors, events and metrics: `redis`, `zookeeper`. */
  readonly name: string;
  readonly guarantee: Guarantee;
  readonly traits?: StoreTraits;
  /**
   * Looks, before anybody needs a lock, for what can never work, such as a table that is missing. Called once when an
   * application starts, and nothing depends on it. Must settle within a bounded time.
   * @throws LockConfigurationError; anything else when the backend cannot answer, which may pass and is then seen in
   * `health`
   */
  start?(): Promise<void>;
  /**
   * One atomic step. Asking again with the same owner succeeds, with a full `ttlMs` and the same token, or a greater
   * one: a lost reply is retried, never a self-made deadlock. Must settle within a bounded time, also on a server that
   * does not answer.
   */
  tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata, asker?: Asker): Promise<LeaseAttempt>;
  /** Still `owner`'s, for another `ttlMs`? Never re-creates. */
  renew(key: string, owner: string, ttlMs: number): Promise<boolean>;
  /** Whether the key was `owner`'s. A store that queues takes `owner` out of the queue too. */
  release(key: string, owner: string): Promise<boolean>;
  /**
   * Whether the server keeps `key` for `owner` now: one reading that changes nothing, and sees what was decided before
   * it. For sequencers, which come from outside: both may be anything. Without it they are of no use with this backend.
   */
  isHeldBy?(key: string, owner: string): Promise<boolean>;
  /**
   * Who has `key` now, and who waits: one reading that changes nothing. For operators, and for those who ask who leads;
   * without it both are refused with this backend.
   */
  look?(key: string): Promise<LeaseState>;
  /**
   * Takes `key` away from `owner`, whichever process that is in: `renew` answers `false` to it from now on, and those
   * who wait are woken. Whether the key was `owner`'s.
   * @default `release`, where leases end with their TTL alone; else eviction is refused
   */
  evict?(key: string, owner: string): Promise<boolean>;
  /** The keys that are held and begin with `prefix`, in any order, a page after the other. @default refused */
  keys?(prefix: string): AsyncIterable<readonly string[]>;
  /**
   * `owner` waits from now on: call `wake` when `key` may have become free. Only a hint: a missing one costs latency,
   * never safety. A store that queues lets the watched owners queue in `tryAcquire`. What it returns ends the watch.
   */
  watch?(key: string, owner: string, wake: () => void): () => void;
  /** Closes what it opened itself (sessions, subscriptions, clients), never a client it was given. Idempotent. */
  close(): Promise<void>;
  readonly health?: HealthSource;
}

/** The caller who asks for a lease, for stores that let a request wait before they send it. */
export interface Asker {
  /** Until when it waits, for stores whose server bounds a wait. Past: it does not wait. */
  readonly deadline: Deadline;
  /**
   * A store calls this right before it sends the request from which the lease counts. `false`: nobody waits for the
   * answer any more, and the store rejects with `NotSentError` instead.
   */
  onSend(): boolean;
}

export type LeaseAttempt = GrantedLease | RefusedLease;

/** The key is the owner's. What a store with sessions knows of them, and others do not, is optional. */
export interface GrantedLease {
  readonly acquired: true;
  /** Grows with every acquisition of the key; below 2^52, because the core appends eleven bits for hand-offs. */
  readonly fencingToken: bigint;
  /** How long the lease is trusted after each renewal. @default the `ttlMs` that was asked for */
  readonly ttlMs?: number;
  /** From when it is, by the monotonic clock. @default when the request was sent */
  readonly sentAt?: number;
  /** Aborts when the server says that the lease is over: its session expired, its node was deleted. */
  readonly revoked?: AbortSignal;
  /** Serves the holder's work, such as the transaction that has the lock. */
  readonly attachment?: unknown;
  /**
   * The work succeeded: makes what it did through `attachment` last, before the release. Rejecting fails the work. A
   * lease with this is one holder's own, and is never handed on to the next caller.
   */
  complete?(): Promise<void>;
}

export interface RefusedLease {
  readonly acquired: false;
  /** The rest of the holder's lease, when the store knows it. */
  readonly retryAfterMs: number | null;
  readonly holder?: Holder;
  /**
   * For a watched owner: why the store could not ask yet, such as a pool with no connection free. It asks as soon as it
   * can, and wakes the caller, who waits on as for a holder. At the end of its time the caller is told this, not that
   * somebody has the key.
   */
  readonly obstacle?: Error;
  /** The owner is still in the store's queue, though it does not watch, and has to be released. */
  readonly staysInLine?: boolean;
}
