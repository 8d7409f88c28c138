/** Call that acquires a key. A re-entry is not traced. */
export interface TracedCall {
  /** Key with the namespace. */
  readonly key: string;
  readonly backend: string;
  readonly waitMs: number;
}

/** Lock that a traced call got. Its events have the same key and fencing token. */
export interface TracedHold {
  readonly key: string;
  readonly backend: string;
  readonly fencingToken: bigint;
  /** Number of hand-offs and transfers that the lease had before this lock. */
  readonly handOffCount: number;
}

/** Listener to the end of a traced call. One of its methods is called, once. */
export interface CallTrace {
  granted(hold: TracedHold): void;
  /** The key is held. */
  refused(): void;
  failed(error: unknown): void;
}

/**
 * Tracer that is called in the async context of each caller, for spans. Observers are called outside of that context.
 * Acquisitions by `LockService.lead` have no caller, and are not traced.
 */
export interface LockTracer {
  /** Called in the context of the caller. */
  readonly begin: (call: TracedCall) => CallTrace | undefined;
  /**
   * Called in the context of a caller that has got a lock, after `CallTrace.granted`. Several callers may share a lock:
   * each has a `hold` object of its own, the same in `enter`, `run` and `leave`.
   */
  readonly enter?: (hold: TracedHold) => void;
  /** Calls `work` once, in an async context that the tracer chooses, and returns its result. Must not throw. */
  readonly run?: <T>(hold: TracedHold, work: () => T) => T;
  /** Called when the caller has released the lock, lost or not, in any context. */
  readonly leave?: (hold: TracedHold) => void;
}

export function toTracedHold(hold: Omit<TracedHold, 'backend'>, backend: string): TracedHold {
  const { key, fencingToken, handOffCount } = hold;
  return { key, backend, fencingToken, handOffCount };
}

export function wrapInTracers<T>(work: () => T, hold: TracedHold, tracers: readonly LockTracer[]): () => T {
  let wrappedWork = work;
  for (const { run } of tracers) {
    const innerWork = wrappedWork;
    if (run) wrappedWork = () => run(hold, innerWork);
  }
  return wrappedWork;
}
