import type { LockLostError, LossReason } from '../contract/errors.js';
import type { Share } from '../contract/claim.js';
import type { BackendHealth } from '../contract/health.js';
import type { Holder } from '../contract/holder.js';
import type { LockTracer } from './lock-tracer.js';

/** A hold, at the moment of the event. */
export interface HoldState {
  readonly key: string;
  readonly fencingToken: bigint;
  readonly heldMs: number;
  /** How much longer the lock can be trusted if no renewal goes through; 0 once it is lost. */
  readonly leftMs: number;
  /** How much of the key it has. Absent: all of it. */
  readonly share?: Share;
}

/** One lock that a service holds, for inspectors and health pages. */
export interface LockSnapshot {
  readonly key: string;
  readonly state: 'held' | 'jeopardy' | 'lost';
  readonly fencingToken: bigint;
  readonly heldMs: number;
  /** Callers of this process who wait for the key. */
  readonly waitersHere: number;
  /** Whether it is a leader's: see `LockService.lead`. */
  readonly leads: boolean;
  /** How much of the key it has. Absent: all of it. */
  readonly share?: Share;
}

/** Why a term ended: the lock was lost; the leader stepped back, or its service ended; the work returned, or threw. */
export type TermEnd = LockLostError['reason'] | 'returned' | 'failed';

/** Somebody who held one key waited for another one. Keys of a class are those of one template. */
export interface LockOrder {
  readonly held: string;
  readonly wanted: string;
  readonly heldClass: string;
  readonly wantedClass: string;
  /** Where it was wanted, as an `Error` has it. */
  readonly stack: string;
}

/** The events of the locks of one process. Keys carry the service's namespace. */
export interface LockEvents {
  /** A caller has to wait for another one of this process. */
  waiting: { readonly key: string; readonly waitersHere: number };
  acquired: {
    readonly key: string;
    readonly fencingToken: bigint;
    readonly waitedMs: number;
    /**
     * `backend`: a round trip; `hand-off`: from the caller before us here; `join`: beside another caller here who shares
     * the key; `re-entry`: this call tree has it.
     */
    readonly from: 'backend' | 'hand-off' | 'join' | 're-entry';
    readonly share?: Share;
  };
  /** Everybody in this process has left the lock. */
  released: { readonly key: string; readonly fencingToken: bigint; readonly heldMs: number; readonly share?: Share };
  timedOut: { readonly key: string; readonly waitMs: number; readonly holder: Holder | undefined };
  /** A renewal failed or is late. The lock is still ours, and may be lost soon. */
  jeopardy: HoldState & { readonly cause?: unknown };
  /** The renewal went through after all. */
  safe: HoldState;
  /** It expired, or was taken away, or given back before its holder was done: see `reason`. */
  lost: HoldState & { readonly reason: LossReason };
  /** This process leads: see `LockService.lead`. It is told of the lock by `acquired`, and later by the others, too. */
  termBegan: { readonly key: string; readonly fencingToken: bigint };
  /** The work has ended, and the key is released. `error`: what the work threw, unless it was told to end. */
  termEnded: {
    readonly key: string;
    readonly fencingToken: bigint;
    readonly ledMs: number;
    readonly reason: TermEnd;
    readonly error?: unknown;
  };
  /** The backend failed in a way that the caller does not see, or sees as `LockBackendError`. */
  backendFailed: { readonly key: string; readonly operation: string; readonly error: unknown };
  healthChanged: BackendHealth;
  /**
   * Keys were taken in orders that can deadlock, by anybody in this process, at any time: each of `orders` was the first
   * between its classes. Told once for each circle; see the option `orderWarnings`.
   */
  orderSuspect: { readonly key: string; readonly orders: readonly LockOrder[] };
}

/** One of the events, with its name as `type`. */
export type LockEvent = { [Name in keyof LockEvents]: { readonly type: Name } & LockEvents[Name] }[keyof LockEvents];

/** A method for each event that is wanted. */
export type LockEventMethods = { [Name in keyof LockEvents]?: (event: LockEvents[Name]) => void };

/**
 * Logs, metrics and inspectors implement it: a method for each event they want, called synchronously, so be quick. What
 * an observer throws becomes a process warning and disturbs neither the lock nor the other observers.
 */
export type LockObserver = LockEventMethods & {
  /** Follows callers as well. */
  readonly tracer?: LockTracer;
};
