import { assertWhole } from '../../core/index.js';
import type { LockedOptions } from './locked-types.js';

/** Smallest `ttlMs` that every backend supports. */
const MIN_COMMON_TTL_MS = 2_000;
/** From this period on, the default `ttlMs` of the service ends before the next tick, even after a crash. */
const MIN_PERIOD_FOR_DEFAULT_TTL_MS = 60_000;

/**
 * Returns the options of `@Locked` for a job that every process starts at the same times: one process runs it. This holds
 * while clocks and timers are off by less than a quarter of `periodMs`. A job that throws, or whose process dies, does not
 * run again before the next tick. A job that takes longer than its period skips a tick. For periods below a minute,
 * `ttlMs` is half the period, at least 2 s: a crashed run frees the key before an early next tick.
 * @param periodMs the shortest time between two ticks
 * @throws LockConfigurationError
 */
export function oncePer(periodMs: number): LockedOptions<'skip'> {
  assertWhole('periodMs', periodMs, 2, 2 ** 32 - 2);
  const minHoldMs = Math.floor(periodMs / 2);
  const ttlOption = periodMs < MIN_PERIOD_FOR_DEFAULT_TTL_MS ? { ttlMs: Math.max(minHoldMs, MIN_COMMON_TTL_MS) } : {};
  return { onBusy: 'skip', minHoldMs, ...ttlOption };
}
