import type { LossReason } from './errors.js';
import type { BackendHealth, Holder } from './lock-backend.js';

/** What happens to the locks of one process. Keys carry the service's namespace. */
export interface LockEvents {
  /** A caller has to wait for another one of this process. */
  waiting: { readonly key: string; readonly waitersHere: number };
  acquired: {
    readonly key: string;
    readonly fencingToken: bigint;
    readonly waitedMs: number;
    /** `backend`: a round trip; `hand-off`: from the caller before us in this process; `re-entry`: this call tree has it. */
    readonly from: 'backend' | 'hand-off' | 're-entry';
  };
  released: { readonly key: string; readonly fencingToken: bigint; readonly heldMs: number };
  timedOut: { readonly key: string; readonly waitMs: number; readonly holder: Holder | undefined };
  /** A renewal failed or is late. The lock is still ours, and may be lost soon. */
  jeopardy: { readonly key: string; readonly fencingToken: bigint; readonly cause?: unknown };
  /** The renewal went through after all. */
  safe: { readonly key: string; readonly fencingToken: bigint };
  lost: { readonly key: string; readonly fencingToken: bigint; readonly reason: LossReason };
  /** The backend failed in a way that the caller does not see, or sees as `LockBackendError`. */
  backendFailed: { readonly key: string; readonly operation: string; readonly error: unknown };
  healthChanged: BackendHealth;
}

/**
 * What logs, metrics and inspectors implement: a method for each event they want, called synchronously, so be quick. What an
 * observer throws becomes a process warning and disturbs neither the lock nor the other observers.
 */
export type LockObserver = { [Name in keyof LockEvents]?: (event: LockEvents[Name]) => void };

/** Passes each event on to every observer. */
export class Observers {
  constructor(private readonly observers: readonly LockObserver[]) {}

  notify<Name extends keyof LockEvents>(name: Name, event: LockEvents[Name]): void {
    for (const observer of this.observers) {
      try {
        observer[name]?.(event);
      } catch (error) {
        process.emitWarning(`a lock observer threw in ${name}: ${String(error)}`);
      }
    }
  }
}
