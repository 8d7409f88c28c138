import type { HandOffOptions } from '../waiting/hand-off-limits.js';
import type { HolderMetadata } from '../contract/holder.js';
import { LockBackend } from '../leasing/lock-backend.js';
import type { Observers } from '../events/observers.js';
import type { Clock } from '../time/timers.js';

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
