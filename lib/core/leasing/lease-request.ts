import type { Deadline } from '../time/deadline.js';
import type { Holder, HolderMetadata } from '../contract/holder.js';
import type { PassedLease } from '../contract/lease-store.js';

export interface AcquireRequest {
  /** Unique name of this acquisition, unless the caller inherits the queue entry of an earlier one. */
  readonly owner: string;
  /** Milliseconds for which the server keeps the lease without a renewal. Backends with sessions use the session's. */
  readonly ttlMs: number;
  /** Milliseconds at the end of `ttlMs` in which the holder no longer trusts the lease. @default 0 */
  readonly untrustedMs?: number;
  readonly deadline: Deadline;
  readonly signal?: AbortSignal | undefined;
  readonly metadata: HolderMetadata;
  /** Lease to adopt. The caller then never waits: a refusal is final. @default a new lease */
  readonly passedLease?: PassedLease;
  /** Whether to let other processes ask first. A store with a queue needs no such delay. */
  readonly shouldYield?: boolean;
  /** Whether `owner` is already in the server's queue, because the previous caller passed on its entry. */
  readonly inheritsQueueEntry?: boolean;
  /**
   * Called when the caller gives up while it has a queue entry and no unanswered request. Returns whether the next
   * caller takes over the entry, which is released otherwise.
   */
  readonly passQueueEntry?: () => boolean;
  /**
   * Called each time the backend learns why the caller has to wait. `undefined`: the holder is unknown. The latest
   * reason is in the timeout error.
   */
  readonly onBlocked?: (obstacle: Holder | Error | undefined) => void;
}
