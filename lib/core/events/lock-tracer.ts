/** A caller that asks for a key which its call tree does not have. */
export interface TracedCall {
  /** With the namespace. */
  readonly key: string;
  readonly backend: string;
  readonly waitMs: number;
}

/** A lock that such a caller got. Events name it by the same key and token. */
export interface TracedHold {
  readonly key: string;
  readonly fencingToken: bigint;
  /** How many callers of this process had its lease before. */
  readonly handOff: number;
}

/** Hears once how a call ended. */
export interface CallTrace {
  granted(hold: TracedHold): void;
  /** Somebody else has the key. */
  refused(): void;
  failed(error: unknown): void;
}

/**
 * Follows callers, each in its own async context, which observers are not told in. For spans. Candidates of `lead` ask
 * in nobody's context, and are not followed.
 */
export interface LockTracer {
  /** Called in the context of whoever asks. */
  readonly begin: (call: TracedCall) => CallTrace | undefined;
  /** Calls `work` once, in a context of its choice, and returns what that returns. Must not throw. */
  readonly run?: <T>(hold: TracedHold, work: () => T) => T;
}

/** `work`, inside of all of them. */
export function followed<T>(work: () => T, hold: TracedHold, tracers: readonly LockTracer[]): () => T {
  let outer = work;
  for (const { run } of tracers) {
    const inner = outer;
    if (run) outer = () => run(hold, inner);
  }
  return outer;
}
