import type { HandOffOptions } from './hand-off-limits.js';
import type { HolderMetadata, LockBackend } from './lock-backend.js';
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

/** What the caller of a key leaves to the next one here when it gives up. */
export interface LinePlace {
  readonly owner: string;
}
