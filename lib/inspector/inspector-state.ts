import type { BackendHealth, LockEvent, LockSnapshot } from '../core/index.js';

/** A process that holds a key or waits for one, as it describes itself. */
export interface InspectedParty {
  readonly owner: string;
  readonly host?: string;
  readonly pid?: number;
  readonly label?: string;
  /** ISO 8601. */
  readonly since?: string;
  /** How much of the key it has, or waits for: `shared`, `2 of 10 permits`. Absent: all of it. */
  readonly share?: string;
}

export interface InspectedHolder extends InspectedParty {
  /** A decimal number, which may be too great for one of JavaScript. */
  readonly fencingToken?: string;
  /** Absent where the lease lasts as long as its process is connected. */
  readonly leftMs?: number;
}

export interface InspectedKey {
  /** Without the namespace. */
  readonly key: string;
  readonly template: string;
  readonly holder?: InspectedHolder;
  /** Where several have it: all of them, `holder` first. */
  readonly holders?: readonly InspectedHolder[];
  /** Those of the server's line, first come first. */
  readonly waiters: readonly InspectedParty[];
  /** The hold of the process that answers. */
  readonly here?: Pick<LockSnapshot, 'state' | 'heldMs' | 'waitersHere' | 'leads'> & {
    /** That of the caller who has the lock by now: hand-offs count up from the one of the lease. */
    readonly fencingToken: string;
  };
}

/** What happened to the keys of one template in the process that answers, in the last minutes. */
export interface InspectedTemplate {
  readonly template: string;
  readonly acquired: number;
  readonly meanWaitMs: number;
  readonly longestWaitMs: number;
  readonly meanHoldMs: number;
  readonly timedOut: number;
  readonly lost: number;
}

export interface InspectedEvent {
  readonly type: LockEvent['type'] | 'evicted';
  /** ISO 8601. */
  readonly at: string;
  readonly backend: string;
  readonly key?: string;
  readonly fencingToken?: string;
  readonly detail?: string;
  /** How often in a row it happened. */
  readonly times: number;
}

export interface InspectedBackend {
  /** As in `forRoot({ backends })`. */
  readonly name: string;
  /** Such as `redis`. */
  readonly kind: string;
  readonly guarantee: string;
  readonly health: BackendHealth;
  /** Whether its server lists its keys. Else there are those of the process that answers, and the one searched for. */
  readonly lists: boolean;
  readonly keys: readonly InspectedKey[];
  /** There are more keys than the page shows. */
  readonly more: boolean;
  /** Why there are fewer keys than there may be. */
  readonly error?: string;
  readonly templates: readonly InspectedTemplate[];
}

/** The JSON that the page reads. */
export interface InspectorState {
  /** The time of the process that answers, ISO 8601. */
  readonly at: string;
  readonly host: string;
  readonly pid: number;
  /** Milliseconds that templates and events reach back. */
  readonly windowMs: number;
  readonly backends: readonly InspectedBackend[];
  /** The newest first. */
  readonly history: readonly InspectedEvent[];
  /** Locks that were lost, time-outs, failures and evictions, the newest first. */
  readonly troubles: readonly InspectedEvent[];
}
