import { assertWhole } from '../../core/index.js';
import type { LockedOptions } from './locked-types.js';

/** The least `ttlMs` that every backend keeps. */
const MIN_TTL_MS = 2_000;
/** Longer periods leave `ttlMs` to the service: its default frees the key in time. */
const SHORT_PERIOD_MS = 60_000;

/**
 * For `@Locked` on a job that every process runs at the same times: one of them does it. `periodMs`: the shortest time
 * between two runs. Exact while clocks and timers are off by less than a quarter of it. A job that throws, or whose
 * process dies, has had its turn; one that is longer than its period skips the next tick. Periods below a minute come
 * with a `ttlMs` of half of them, and at least 2 s, so that a crash costs no more ticks than that.
 * @throws LockConfigurationError
 */
export function oncePer(periodMs: number): LockedOptions<'skip'> {
  assertWhole('periodMs', periodMs, 2, 2 ** 32 - 2);
  const minHoldMs = Math.floor(periodMs / 2);
  const ttl = periodMs < SHORT_PERIOD_MS ? { ttlMs: Math.max(minHoldMs, MIN_TTL_MS) } : {};
  return { onBusy: 'skip', minHoldMs, ...ttl };
}
