/** Result whose work goes on after the method has returned it. */
export interface FollowedResult {
  /** Result for the caller: the method's own one, or a wrapper of it. */
  readonly value: unknown;
  /** Ends the work with an error. */
  cancel(reason: Error): void;
}

/** Callbacks for the end of a followed result. */
export interface FollowCallbacks {
  /** Reports that the work has ended. May be called more than once. */
  readonly onEnd: () => void;
  /** Returns a promise that resolves when the lock is released, and rejects when the lock was lost before. */
  readonly whenReleased: () => Promise<unknown>;
}
