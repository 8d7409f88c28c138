import type { Deadline } from '../time/deadline.js';
import type { Holder, HolderMetadata } from '../contract/holder.js';

/** Caller's request to a backend. */
export interface AcquireRequest {
  /** Unique name of this acquisition. Only a caller that inherits the queue entry of this owner uses the name again. */
  readonly owner: string;
  /** Milliseconds for which the server keeps the lease without a renewal. Backends with sessions use the session's. */
  readonly ttlMs: number;
  /** Milliseconds at the end of `ttlMs` in which the holder no longer trusts the lease. @default 0 */
  readonly untrustedMs?: number;
  readonly deadline: Deadline;
  readonly signal?: AbortSignal | undefined;
  readonly metadata: HolderMetadata;
  /**
   * Whether to let other processes ask first, because callers of this process have used up their hand-offs. A store
   * with a queue needs no such delay.
   */
  readonly shouldYield?: boolean;
  /** Whether `owner` is already in the server's queue, because the previous caller gave up and passed on its entry. */
  readonly inheritsQueueEntry?: boolean;
  /**
   * Called when the caller gives up while it has a queue entry and no unanswered request. Returns whether the next
   * caller of this process takes over the entry with the same `owner`. Otherwise the entry is released.
   */
  readonly passQueueEntry?: () => boolean;
  /**
   * Called each time the backend learns why the caller has to wait: the holder, `undefined` for an unknown holder, or a
   * failure. The latest one is in the caller's timeout error.
   */
  readonly onBlocked?: (by: Holder | Error | undefined) => void;
}
