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
  /** Decimal digits: the number may be too great for JavaScript's numbers. */
  readonly fencingToken?: string;
  /** Milliseconds until the lease ends. Absent where it lasts as long as its process is connected. */
  readonly leftMs?: number;
}

export interface InspectedKey {
  /** The key without the namespace. */
  readonly key: string;
  readonly template: string;
  readonly holder?: InspectedHolder;
  /** All holders, `holder` first, where several share the key. */
  readonly holders?: readonly InspectedHolder[];
  /** The waiters in the server's line, first come first. */
  readonly waiters: readonly InspectedParty[];
  /** The hold of the process that answers. */
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
  /** Whether the server lists its keys. Otherwise `keys` has those of the answering process, and the one searched for. */
  readonly lists: boolean;
  readonly keys: readonly InspectedKey[];
  /** Whether there are more keys than `keys` has. */
  readonly more: boolean;
  /** The reason why keys may be missing. */
  readonly error?: string;
  readonly templates: readonly InspectedTemplate[];
}

/** State of all backends: the JSON that the page reads. */
export interface InspectorState {
  /** Time of the answer by the clock of its process, in ISO 8601. */
  readonly at: string;
  readonly host: string;
  readonly pid: number;
  /** Milliseconds for which templates and events reach back. */
  readonly windowMs: number;
  readonly backends: readonly InspectedBackend[];
  /** Ordinary events, the newest first. */
  readonly history: readonly InspectedEvent[];
  /** Locks that were lost, time-outs, failures and evictions, the newest first. */
  readonly troubles: readonly InspectedEvent[];
}
