import type { Connection } from '../../test/support/harness-connection.js';

/** The same for all, so that nobody wins by waiting less or by letting go sooner. */
export interface Terms {
  readonly ttlMs: number;
  readonly waitMs: number;
}

/** A contestant in one process. */
export interface Locker {
  /** Rejects when the lock was not had within `waitMs`. */
  /** Where there is more than `withLock`: resolves to what gives the lock back. */
  acquire?(key: string): Promise<() => Promise<void>>;
  withLock(key: string, work: () => Promise<void> | void): Promise<void>;
  close(): Promise<void> | void;
}

/** Somebody who locks: we, a peer, or the raw calls that nobody can do without. */
export interface Contestant {
  readonly name: string;
  /** The package whose version belongs into the report. */
  readonly packageName?: string;
  /** Keeps a lock for longer than its TTL by itself. */
  readonly renews: boolean;
  /** Knows nothing of other processes. */
  readonly oneProcess?: true;
  /** Does not wait, and takes part only where nobody has to. */
  readonly alone?: true;
  /** Waits and holds like another contestant, and takes part only where that does not matter. */
  readonly racesOnly?: true;
  connect(to: Connection, terms: Terms): Promise<Locker>;
}

/** How long those pause who ask again, where their library leaves it to the caller: 10 to 50 ms. */
export const RETRY = { shortestMs: 10, longestMs: 50 } as const;

/** Asks until it is granted, as anybody does who has no library. */
export async function retried(attempt: () => Promise<boolean>, { waitMs }: Terms): Promise<void> {
  const abandonAt = performance.now() + waitMs;
  while (!(await attempt())) {
    if (performance.now() >= abandonAt) throw new Error(`not had within ${waitMs} ms`);
    const pauseMs = RETRY.shortestMs + Math.random() * (RETRY.longestMs - RETRY.shortestMs);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
