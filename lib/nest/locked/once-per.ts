import { assertWhole } from '../../core/index.js';
import type { LockedOptions } from './locked-types.js';

/** Smallest `ttlMs` that every backend supports. */
const MIN_COMMON_TTL_MS = 2_000;
/** Shortest period for which the default `ttlMs` of the service frees the key before the next tick after a crash. */
const MIN_DEFAULT_TTL_PERIOD_MS = 60_000;

/**
 * Returns the options of `@Locked` for a job that every process starts at the same times: one process runs it. This holds
 * while clocks and timers are off by less than a quarter of `periodMs`. A job that throws, or whose process dies, does not
 * run again before the next tick. A job that takes longer than its period skips a tick. For periods below a minute,
 * `ttlMs` is half the period and at least 2 s. After a crash the key is then free in time for an early tick.
 * @param periodMs the shortest time between two ticks
 * @throws LockConfigurationError
 */
export function oncePer(periodMs: number): LockedOptions<'skip'> {
  assertWhole('periodMs', periodMs, 2, 2 ** 32 - 2);
  const minHoldMs = Math.floor(periodMs / 2);
  const ttlOption = periodMs < MIN_DEFAULT_TTL_PERIOD_MS ? { ttlMs: Math.max(minHoldMs, MIN_COMMON_TTL_MS) } : {};
  return { onBusy: 'skip', minHoldMs, ...ttlOption };
}
