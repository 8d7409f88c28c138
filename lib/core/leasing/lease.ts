/** A time-bounded right to a key. */
export interface Lease {
  /** Grows with every acquisition of the key; below 2^52, because the core appends eleven bits for hand-offs. */
  readonly fencingToken: bigint;
  /**
   * We stood in a line of the backend's for it, and others may stand there now: callers here soon let that line go on.
   */
  readonly queued?: boolean;
  /** The true one: a session backend reports the session's. */
  readonly ttlMs: number;
  /** `clock.now()` before the request that this lease answers was sent. */
  readonly sentAt: number;
  /** Still ours, for another `ttlMs` from when this was called? Rejecting is no answer, and is asked again. */
  renew(): Promise<boolean>;
  /** Harmless when the lease is already lost. */
  release(): Promise<void>;
  /** Serves the holder's work, such as the transaction that has the lock. */
  readonly attachment?: unknown;
  /**
   * The work succeeded: makes what it did through `attachment` last, before the release. Rejecting fails the work. A
   * lease with this is one holder's own, and is never handed on to the next caller.
   */
  readonly complete?: (() => Promise<void>) | undefined;
  /** A server that pushes loss (node deleted, session expired) may say so early. */
  readonly revoked?: AbortSignal | undefined;
}
