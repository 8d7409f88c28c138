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
  readonly fencingToken: bigint;
  /** Number of callers of this process that had the lease before. */
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
 * Candidates of `lead` have no caller, and are not traced.
 */
export interface LockTracer {
  /** Called in the context of the caller. */
  readonly begin: (call: TracedCall) => CallTrace | undefined;
  /** Calls `work` once, in a context of its choice, and returns its result. Must not throw. */
  readonly run?: <T>(hold: TracedHold, work: () => T) => T;
}

export function wrapInTracers<T>(work: () => T, hold: TracedHold, tracers: readonly LockTracer[]): () => T {
  let wrappedWork = work;
  for (const { run } of tracers) {
    const innerWork = wrappedWork;
    if (run) wrappedWork = () => run(hold, innerWork);
  }
  return wrappedWork;
}
