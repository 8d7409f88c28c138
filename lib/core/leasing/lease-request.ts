import type { Deadline } from '../time/deadline.js';
import type { Holder, HolderMetadata } from '../contract/holder.js';

export interface AcquireRequest {
  /** Unique to this acquisition and never used again. Nobody but its process can make one that names it. */
  readonly owner: string;
  /** How long the server keeps the key ours without a renewal; backends with sessions use their own. */
  readonly ttlMs: number;
  /** The last part of it, which the holder will not trust: an answer that comes in it is too late. @default 0 */
  readonly lockDelayMs?: number;
  readonly deadline: Deadline;
  readonly signal?: AbortSignal | undefined;
  readonly metadata: HolderMetadata;
  /**
   * Callers of this process have just had the key for as long as they may: whoever asks again and again must now let
   * others ask first. A backend that queues its contenders has nothing to do.
   */
  readonly yields?: boolean;
  /** The `owner` stands in the backend's line already: the caller before gave up and left its place. */
  readonly inherited?: boolean;
  /**
   * For one who gives up, stands in line, and has nothing under way: whether the next caller of this process goes on at
   * once with the same `owner`. If so, what is on the server is left there.
   */
  readonly pass?: () => boolean;
  /**
   * Tells the core what is in the way, each time the backend learns it: who has the key, as far as it knows
   * (`undefined`: it does not), or the failure for which nobody can say. A caller whose time is up is then told the one
   * or the other.
   */
  readonly blockedBy?: (by: Holder | Error | undefined) => void;
}
