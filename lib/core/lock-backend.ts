import type { Deadline } from './deadline.js';

/** Who holds a key, as the holder itself put it: advice for people, no proof of anything. */
export interface HolderMetadata {
  readonly host: string;
  readonly pid: number;
  readonly label?: string;
}

/** What a backend could find out about the present holder of a key. */
export interface Holder extends HolderMetadata {
  /** When the holder got the key, or stood in line for it: by the backend's clock, or by the holder's where that keeps no time. */
  readonly since?: Date;
}

/**
 * What a holder may rely on. `consensus`: a majority of servers remembers it. `durable`: one server's disk does.
 * `best-effort`: a restart, an eviction or a failover may let a second holder in; only the fencing token protects then.
 */
export type Guarantee = 'consensus' | 'durable' | 'best-effort';

/** Whether the backend can be reached. `idle`: nothing was asked of it yet. */
export interface BackendHealth {
  readonly status: 'up' | 'down' | 'idle';
  /** What is wrong, or what an operator should change. Never contains a secret. */
  readonly detail?: string;
  /** Its servers one by one, where there are several and any of them may fail. */
  readonly nodes?: readonly NodeHealth[];
}

/** What a backend knows of its server without asking it. See `ReportedHealth`. */
export interface HealthSource {
  readonly current: BackendHealth;
  /**
   * Calls `listener` on every change of the status, or of that of a node; what it returns stops that. `down` puts every hold in
   * jeopardy that is renewed, `up` has every hold renewed at once, so that a lease lost in a restart is told within a round trip.
   */
  onChange(listener: (health: BackendHealth) => void): () => void;
}

export interface NodeHealth extends Omit<BackendHealth, 'nodes'> {
  /** Host and port, or what else tells it from the others. */
  readonly name: string;
}

/** The leases that a backend can keep, as `ttlMs`. */
export interface TtlLimits {
  readonly minMs: number;
  readonly maxMs: number;
}

/** What a server that queues contenders, or that thinks in sessions, implements. Simpler stores implement `LeaseStore`. */
export interface LockBackend {
  /** Shown in errors, events and metrics: `redis`, `zookeeper`. */
  readonly name: string;
  readonly guarantee: Guarantee;
  /** Other TTLs are refused where they are given, with `LockConfigurationError`. @default all that a lock service takes */
  readonly ttlLimits?: TtlLimits;
  /** See `LeaseStore`. */
  readonly keepsOrder?: boolean;
  /** A lock ends with the connection of its holder, at once when that crashes. @default false */
  readonly endsWithConnection?: boolean;
  /**
   * Looks, before anybody needs a lock, for what can never work, such as a table that is missing. Called once when an
   * application starts, and nothing depends on it. Must settle within a bounded time.
   * @throws LockConfigurationError; anything else when the backend cannot answer, which may pass and is then seen in `health`
   */
  start?(): Promise<void>;
  /**
   * Resolves to a lease once `key` is ours alone, or to `null` when `request.deadline` passes first; a deadline already past
   * means: try once. Unless it resolves to a lease, nothing of ours stays behind on the server: what could not be taken back
   * at once is taken back in the background.
   * @throws LockBackendError when the backend cannot answer; `request.signal.reason` when the caller gives up
   */
  acquire(key: string, request: AcquireRequest): Promise<Lease | null>;
  /** Rejects all that is asked, or waited for, now. */
  dismiss?(reason: unknown): void;
  /**
   * Whether the server keeps `key` for `owner` now: one reading that changes nothing, and sees what was decided before it. For
   * sequencers, which come from outside: both may be anything. Without it they are of no use with this backend.
   */
  isHeldBy?(key: string, owner: string): Promise<boolean>;
  /** Closes what the backend opened itself (sessions, subscriptions, clients it made), never a client it was given. Idempotent. */
  close(): Promise<void>;
  readonly health?: HealthSource;
}

/**
 * Opens a backend with connections of its own. `redis({ url })` and its like return one, so that a single setting serves any
 * number of lock services: side by side, or one after the other has been closed.
 */
export type BackendFactory = () => LockBackend;

export interface AcquireRequest {
  /** Unique to this acquisition and never used again. Nobody but its process can make one that names it. */
  readonly owner: string;
  /** How long the server keeps the key ours without a renewal; backends with sessions use their own. */
  readonly ttlMs: number;
  /** So much of it the holder will not trust: an answer that comes in the last part of the lease comes too late. @default 0 */
  readonly lockDelayMs?: number;
  readonly deadline: Deadline;
  readonly signal?: AbortSignal | undefined;
  readonly metadata: HolderMetadata;
  /**
   * Callers of this process have just had the key for as long as they may: whoever asks again and again must now let others
   * ask first. A backend that queues its contenders has nothing to do.
   */
  readonly yields?: boolean;
  /** A backend that does not know it has each caller stand in line anew. */
  readonly place?: Place;
  /**
   * Tells the core what is in the way, each time the backend learns it: who has the key, as far as it knows (`undefined`: it does
   * not), or the failure for which nobody can say. A caller whose time is up is then told the one or the other.
   */
  readonly blockedBy?: (by: Holder | Error | undefined) => void;
}

/** Where a process stands in the backend's line, whoever of its callers it is for. */
export interface Place {
  /** The `owner` stands in line already: the caller before gave up and left its place. */
  readonly inherited: boolean;
  /**
   * For one who gives up, stands in line, and has nothing under way: whether the next caller of this process goes on at once with
   * the same `owner`. If so, what is on the server is left there.
   */
  pass(): boolean;
}

/** A time-bounded right to a key. */
export interface Lease {
  /** Grows with every acquisition of the key; below 2^52, because the core appends eleven bits for hand-offs. */
  readonly fencingToken: bigint;
  /** We stood in a line of the backend's for it, and others may stand there now: callers here soon let that line go on. */
  readonly queued?: boolean;
  /** The true one: a session backend reports the session's. */
  readonly ttlMs: number;
  /** `clock.now()` before the request that this lease answers was sent. */
  readonly sentAt: number;
  /** Still ours, for another `ttlMs` from when this was called? Rejecting is no answer, and is asked again. */
  renew(): Promise<boolean>;
  /** Harmless when the lease is already lost. */
  release(): Promise<void>;
  /** What a backend gives the holder to work with, such as the transaction that has the lock. */
  readonly attachment?: unknown;
  /**
   * The work succeeded: makes what it did through `attachment` last, before the release. Rejecting fails the work. A lease
   * with this is one holder's own, and is never handed on to the next caller.
   */
  readonly complete?: (() => Promise<void>) | undefined;
  /** A server that pushes loss (node deleted, session expired) may say so early. */
  readonly revoked?: AbortSignal | undefined;
}
