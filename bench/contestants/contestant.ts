import type { Connection } from '../../test/support/harness-connection.js';

/** Times of a lock. They are the same for all contestants, which keeps the comparison fair. */
export interface Terms {
  readonly ttlMs: number;
  readonly waitMs: number;
}

/** Connection of a contestant in one process. */
export interface Locker {
  /** Acquires the lock and resolves to its release, where the library has such a call. */
  acquire?(key: string): Promise<() => Promise<void>>;
  /** Runs `work` under the lock. Rejects where the lock was not granted within `waitMs`. */
  readonly withLock: (key: string, work: () => Promise<void> | void) => Promise<void>;
  /** Runs `work` under the whole lock, where `withLock` takes a part of it. */
  readonly withWholeLock?: Locker['withLock'];
  /** Part of the lock that `withLock` and `acquire` take, so that others may hold the rest. @default 1 */
  readonly part?: number;
  close(): Promise<void> | void;
}

/** Way to lock that is measured: the library, another library, or the floor of raw calls. */
export interface Contestant {
  readonly name: string;
  /** Package whose version the report shows. */
  readonly packageName?: string;
  /** Whether the contestant renews leases by itself, and so holds locks longer than a TTL. */
  readonly renewsLease: boolean;
  /** Whether its locks exclude callers of the same process only. */
  readonly isLocalOnly?: true;
  /** Whether it cannot wait for a held key, and takes part only in races without contention. */
  readonly isUncontendedOnly?: true;
  /** Whether it differs from another contestant in races only, and takes no part in other scenarios. */
  readonly isRaceVariant?: true;
  /** Commands of Redis that it sends and that its scripts do not call. @default unknown */
  readonly commandsBesideScripts?: readonly string[];
  connect(to: Connection, terms: Terms): Promise<Locker>;
}

/** Shortest and longest pause between two attempts, where the library leaves the pause to its caller. */
export const RETRY_PAUSE = { shortestMs: 10, longestMs: 50 } as const;

/** Repeats an attempt until it succeeds, with pauses. Rejects after `waitMs`. */
export async function retryUntilGranted(attempt: () => Promise<boolean>, { waitMs }: Terms): Promise<void> {
  const abandonAt = performance.now() + waitMs;
  while (!(await attempt())) {
    if (performance.now() >= abandonAt) throw new Error(`not had within ${waitMs} ms`);
    const pauseMs = RETRY_PAUSE.shortestMs + Math.random() * (RETRY_PAUSE.longestMs - RETRY_PAUSE.shortestMs);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
