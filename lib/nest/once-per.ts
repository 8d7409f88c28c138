import { assertWhole } from '../core/index.js';
import type { LockedOptions } from './locked-types.js';

/**
 * For `@Locked` on a job that every process runs at the same times: one of them does it. `periodMs`: the shortest time
 * between two runs. Exact while clocks and timers are off by less than a quarter of it. A job that throws, or whose
 * process dies, has had its turn; one that is longer than its period skips the next tick.
 * @throws LockConfigurationError
 */
export function oncePer(periodMs: number): LockedOptions<'skip'> {
  assertWhole('periodMs', periodMs, 2, 2 ** 32 - 2);
  return { onBusy: 'skip', minHoldMs: Math.floor(periodMs / 2) };
}
