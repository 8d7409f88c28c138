/** Result whose work goes on after the method has returned it. */
export interface FollowedResult {
  readonly value: unknown;
  /** Ends the work with an error. `onEnd` is called when no step of the work runs any more. */
  cancel(reason: Error): void;
}

export interface FollowCallbacks {
  /** Called when the work has ended, perhaps more than once. */
  readonly onEnd: () => void;
  /** Called before each step. Calls `cancel` if a lock is lost: after a blocked event loop, nobody knows this yet. */
  readonly cancelIfLost: () => void;
  /** Returns a promise that resolves when the lock is released, and rejects when the lock was lost before. */
  readonly whenReleased: () => Promise<unknown>;
}
