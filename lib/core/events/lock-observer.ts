import type { LockLostError, LossReason } from '../contract/errors.js';
import type { Share } from '../contract/claim.js';
import type { BackendHealth } from '../contract/health.js';
import type { Holder } from '../contract/holder.js';
import type { LockTracer } from './lock-tracer.js';

/** State of a lock at the moment of an event. */
export interface HoldState {
  readonly key: string;
  readonly fencingToken: bigint;
  readonly heldMs: number;
  /** Milliseconds until the lock is no longer trusted, unless a renewal succeeds first; 0 once it is lost. */
  readonly leftMs: number;
  /** Part of the key that the lock has. Absent: all of the key. */
  readonly share?: Share;
}

/** Lock that a service holds, for inspectors and health pages. */
export interface LockSnapshot {
  readonly key: string;
  readonly state: 'held' | 'jeopardy' | 'lost';
  readonly fencingToken: bigint;
  readonly heldMs: number;
  /** Number of callers of this process who wait for the key. */
  readonly waitersHere: number;
  /** Whether the lock is a leader's: see `LockService.lead`. */
  readonly leads: boolean;
  /** Part of the key that the lock has. Absent: all of the key. */
  readonly share?: Share;
}

/**
 * Reason why a term ended: the lock was lost, the leader resigned, its service ended, or the work returned or threw.
 */
export type TermEnd = LockLostError['reason'] | 'returned' | 'failed';

/**
 * Order of two keys: a caller that held `held` waited for `wanted`. See the option `orderWarnings` for their classes.
 */
export interface LockOrder {
  readonly held: string;
  readonly wanted: string;
  readonly heldClass: string;
  readonly wantedClass: string;
  /** Call stack of the caller that waited, in the form of `Error.stack`. */
  readonly stack: string;
}

/** Events of the locks of one process, by name. Keys begin with the service's namespace. */
export interface LockEvents {
  /** A caller has to wait for another caller of this process. */
  waiting: { readonly key: string; readonly waitersHere: number };
  acquired: {
    readonly key: string;
    readonly fencingToken: bigint;
    readonly waitedMs: number;
    /**
     * Source of the lock. `backend`: a round trip; `hand-off`: the previous caller of this process; `join`: another
     * caller of this process that shares the key; `re-entry`: this call tree; `transfer`: another process, see `adopt`.
     */
    readonly from: 'backend' | 'hand-off' | 'join' | 're-entry' | 'transfer';
    readonly share?: Share;
  };
  /** All callers of this process have left the lock. */
  released: { readonly key: string; readonly fencingToken: bigint; readonly heldMs: number; readonly share?: Share };
  timedOut: { readonly key: string; readonly waitMs: number; readonly holder: Holder | undefined };
  /** A renewal failed or is late. The lock is still held, and may be lost soon. */
  jeopardy: HoldState & { readonly cause?: unknown };
  /** A renewal succeeded, so that the lock is out of jeopardy. */
  safe: HoldState;
  /** The lock ended before its holder released it: see `reason`. */
  lost: HoldState & { readonly reason: LossReason };
  /** This process begins to lead: see `LockService.lead`. The leader's lock has its own events besides. */
  termBegan: { readonly key: string; readonly fencingToken: bigint };
  /** The leader's work has ended, and the key is released. `error`: the work's error, unless an abort caused it. */
  termEnded: {
    readonly key: string;
    readonly fencingToken: bigint;
    readonly ledMs: number;
    readonly reason: TermEnd;
    readonly error?: unknown;
  };
  /** A request to the backend failed. If a caller waited for it, that caller gets a `LockBackendError`. */
  backendFailed: { readonly key: string; readonly operation: string; readonly error: unknown };
  healthChanged: BackendHealth;
  /**
   * Callers of this process have taken keys in orders that can deadlock. Each of `orders` is the first one seen between
   * its two classes. Each circle is reported once; see the option `orderWarnings`.
   */
  orderSuspect: { readonly key: string; readonly orders: readonly LockOrder[] };
}

/** Event with its name as `type`. */
export type LockEvent = { [Name in keyof LockEvents]: { readonly type: Name } & LockEvents[Name] }[keyof LockEvents];

/** Methods of an observer, one for each event. */
export type LockEventMethods = { [Name in keyof LockEvents]?: (event: LockEvents[Name]) => void };

/**
 * Listener to events, such as a log or metrics, with a method for each event that it needs. Methods are called
 * synchronously and should be quick. An error becomes a process warning, and affects neither locks nor other observers.
 */
export type LockObserver = LockEventMethods & {
  /** Tracer of calls, for spans. */
  readonly tracer?: LockTracer;
};
