import type { Deadline } from './deadline.js';
import type { HandOffOptions } from './hand-off-limits.js';
import type { HolderMetadata, LockBackend } from './lock-backend.js';
import type { ResolvedOptions } from './lock-options.js';
import type { Observers } from './observers.js';
import type { Clock } from './timers.js';

export interface HoldsSettings {
  readonly backend: LockBackend;
  readonly clock: Clock;
  readonly observers: Observers;
  readonly metadata: HolderMetadata;
  readonly handOffs: HandOffOptions;
  readonly maxWaiters: number;
  /** Aborts when nobody may get a lock any more. */
  readonly stopped: AbortSignal;
}

/** What a caller asks for. */
export interface Call {
  readonly key: string;
  readonly options: ResolvedOptions;
  readonly deadline: Deadline;
  readonly since: number;
}

/** What the caller of a key leaves to the next one here when it gives up. */
export interface LinePlace {
  readonly owner: string;
}
