/** A result whose work goes on after the method has returned it. */
export interface FollowedResult {
  /** The result as the caller gets it. */
  readonly value: unknown;
  /** Ends the work. */
  cancel(reason: Error): void;
}

export interface Follower {
  /** Notes that the work has ended. May be called more than once. */
  readonly onEnd: () => void;
  /** Resolves when the lock is released, and rejects when it was lost before. */
  readonly whenReleased: () => Promise<unknown>;
}
