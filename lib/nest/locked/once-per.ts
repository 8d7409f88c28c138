import { assertWhole } from '../../core/index.js';
import type { LockedOptions } from './locked-types.js';

/** Smallest `ttlMs` that every backend supports. */
const MIN_COMMON_TTL_MS = 2_000;
const MAX_TTL_MS = 30_000;

/**
 * Returns the options of `@Locked` for a job that every process starts at the same times: one process runs it. Several
 * may run it when clocks or timers are off by a quarter of `periodMs` or more. A job that throws, or whose process
 * dies, does not run again before the next tick. A job that takes longer than its period skips a tick. `ttlMs` is half
 * the period, from 2 s to 30 s, so that a crashed run frees the key before an early next tick.
 * @param periodMs the shortest time between two ticks
 * @throws LockConfigurationError
 */
export function oncePer(periodMs: number): LockedOptions<'skip'> {
  assertWhole('periodMs', periodMs, 2, 2 ** 32 - 2);
  const minHoldMs = Math.floor(periodMs / 2);
  const ttlMs = Math.min(Math.max(minHoldMs, MIN_COMMON_TTL_MS), MAX_TTL_MS);
  return { onBusy: 'skip', minHoldMs, ttlMs };
}
