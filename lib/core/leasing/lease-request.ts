import type { Deadline } from '../time/deadline.js';
import type { Holder, HolderMetadata } from '../contract/holder.js';
import type { TransferredLease } from '../contract/lease-store.js';

export const NO_ANSWER_TEXT = 'no answer before the deadline';

/** The reason why callers wait: the unanswered request of another caller, which a healthy store would have answered. */
export class NoAnswerYetError extends Error {
  constructor() {
    super(NO_ANSWER_TEXT);
  }
}

export interface AcquireRequest {
  /** Unique name of this acquisition, or of the earlier one whose queue entry the caller inherits. */
  readonly owner: string;
  /**
   * Milliseconds for which the server keeps the lease without a renewal. Backends with sessions use the TTL of the
   * session instead.
   */
  readonly ttlMs: number;
  /** Milliseconds at the end of `ttlMs` in which the holder no longer trusts the lease. @default 0 */
  readonly untrustedMs?: number;
  readonly deadline: Deadline;
  /** Whether the caller makes one attempt only, without a wait. @default whether the deadline has passed */
  readonly isSingleAttempt?: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly metadata: HolderMetadata;
  /** Lease to adopt. The caller then never waits: a refusal is final. @default a new lease */
  readonly transferredLease?: TransferredLease;
  /** Whether to wait for a moment, so that other processes can ask first. A store with a queue needs no such wait. */
  readonly shouldYield?: boolean;
  /** Whether `owner` is already in the server's queue, because the previous caller passed on its entry. */
  readonly inheritsQueueEntry?: boolean;
  /**
   * Offers this acquisition's queue entry to the next waiter of this process. Called when the caller gives up and no
   * request is unanswered. Returns `false` if no waiter took the entry. The backend then releases the entry.
   */
  readonly handOffQueueEntry?: () => boolean;
  /**
   * Called each time the backend learns why the caller has to wait. `undefined`: the holder is unknown. The latest
   * reason is in the timeout error.
   */
  readonly onBlocked?: (obstacle: Holder | Error | undefined) => void;
}
