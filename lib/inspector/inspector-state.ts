import type { BackendHealth, LockEvent, LockSnapshot } from '../core/index.js';

/** A process that holds a key or waits for one, as it describes itself. */
export interface InspectedParty {
  readonly owner: string;
  readonly host?: string;
  readonly pid?: number;
  readonly label?: string;
  /** Time since which the process holds the key or waits for it, in ISO 8601. */
  readonly since?: string;
  /** Share of the key that the process has or waits for: `shared`, `2 of 10 permits`. Absent for the whole key. */
  readonly share?: string;
}

export interface InspectedHolder extends InspectedParty {
  /** Fencing token in decimal digits, because JSON has no bigint. */
  readonly fencingToken?: string;
  /** Milliseconds until the lease ends. Absent for a lease that ends only when its process disconnects. */
  readonly leftMs?: number;
}

export interface InspectedKey {
  /** The key without the namespace. */
  readonly key: string;
  readonly template: string;
  readonly holder?: InspectedHolder;
  /** All holders, `holder` first, where several share the key. */
  readonly holders?: readonly InspectedHolder[];
  /** Waiters in the server's queue, in the order of their arrival. */
  readonly waiters: readonly InspectedParty[];
  /** Lock of the process that answers the page's request, if this process holds the key. */
  readonly here?: Pick<LockSnapshot, 'state' | 'heldMs' | 'waitersHere' | 'leads'> & {
    /** Token of the caller that has the lock now. Hand-offs in this process count up from the token of the lease. */
    readonly fencingToken: string;
  };
}

/** Figures about the keys of one template in the process that answers, in the last minutes. */
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
  /** Time of the event, in ISO 8601. */
  readonly at: string;
  readonly backend: string;
  readonly key?: string;
  readonly fencingToken?: string;
  readonly detail?: string;
  /** Number of times that the event happened in a row. */
  readonly times: number;
}

export interface InspectedBackend {
  /** Name of the backend in `forRoot({ backends })`. */
  readonly name: string;
  /** Name of the backend's technology, such as `redis`. */
  readonly kind: string;
  readonly guarantee: string;
  readonly health: BackendHealth;
  /** Whether the server can list its keys. If not, `keys` has only this process's keys and the searched key. */
  readonly lists: boolean;
  readonly keys: readonly InspectedKey[];
  /** Whether there are more keys than `keys` has. */
  readonly more: boolean;
  /** The reason why keys may be missing. */
  readonly error?: string;
  readonly templates: readonly InspectedTemplate[];
}

/** JSON that the page reads: the state of all backends, and the newest events. */
export interface InspectorState {
  /** Time of the answer by the clock of its process, in ISO 8601. */
  readonly at: string;
  readonly host: string;
  readonly pid: number;
  /** Maximum age in milliseconds of the events that this state includes. */
  readonly windowMs: number;
  readonly backends: readonly InspectedBackend[];
  /** Ordinary events, the newest first. */
  readonly history: readonly InspectedEvent[];
  /** Locks that were lost, time-outs, failures and evictions, the newest first. */
  readonly troubles: readonly InspectedEvent[];
}
