/** Call for a key that its call tree does not have. */
export interface TracedCall {
  /** Key with the namespace. */
  readonly key: string;
  readonly backend: string;
  readonly waitMs: number;
}

/** Lock that such a call got. Events name it by the same key and token. */
export interface TracedHold {
  readonly key: string;
  readonly fencingToken: bigint;
  /** Number of callers of this process that had its lease before. */
  readonly handOff: number;
}

/** Receiver of a call's end. One of its methods is called, once. */
export interface CallTrace {
  granted(hold: TracedHold): void;
  /** The key is held. */
  refused(): void;
  failed(error: unknown): void;
}

/**
 * Follows callers in their own async context, for spans. Observers are called outside of it. Candidates of `lead` have no
 * caller's context, and are not followed.
 */
export interface LockTracer {
  /** Called in the context of the caller. */
  readonly begin: (call: TracedCall) => CallTrace | undefined;
  /** Calls `work` once, in a context of its choice, and returns its result. Must not throw. */
  readonly run?: <T>(hold: TracedHold, work: () => T) => T;
}

/** Returns `work` as a function that runs it inside of all tracers. */
export function wrapInTracers<T>(work: () => T, hold: TracedHold, tracers: readonly LockTracer[]): () => T {
  let outer = work;
  for (const { run } of tracers) {
    const inner = outer;
    if (run) outer = () => run(hold, inner);
  }
  return outer;
}
