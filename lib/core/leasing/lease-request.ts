import type { Deadline } from '../time/deadline.js';
import type { Holder, HolderMetadata } from '../contract/holder.js';

/** Caller's request to a backend. */
export interface AcquireRequest {
  /** Unique name of this acquisition. Only a caller that inherits its queue entry uses it again. */
  readonly owner: string;
  /** Milliseconds for which the server keeps the lease without a renewal. Backends with sessions use the session's. */
  readonly ttlMs: number;
  /** Last part of `ttlMs`, in which the holder no longer trusts the lease. A reply in that time is too late. @default 0 */
  readonly lockDelayMs?: number;
  readonly deadline: Deadline;
  readonly signal?: AbortSignal | undefined;
  readonly metadata: HolderMetadata;
  /**
   * Whether callers of this process have just had the key for as long as they may, and have to let other processes ask
   * first. A store that queues its contenders sees to that itself.
   */
  readonly yields?: boolean;
  /** Whether `owner` is in the server's queue already, since the previous caller gave up and left its entry. */
  readonly inherited?: boolean;
  /**
   * Called when the caller gives up, is in the server's queue, and has no request under way. Returns whether the next
   * caller of this process goes on at once with the same `owner`: the queue entry is then left on the server.
   */
  readonly passQueueEntry?: () => boolean;
  /**
   * Called each time the backend learns what is in the way: the holder, `undefined` for an unknown one, or a failure. A
   * caller whose time is up is told the latest.
   */
  readonly onBlocked?: (by: Holder | Error | undefined) => void;
}
