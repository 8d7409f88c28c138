import { isQuickTier } from '../../support/tier.js';
import type { Schedule } from './moments.js';
import { scheduleOf } from './schedule.js';

/** `PLACEMENT_FIRST=54 PLACEMENT_SEEDS=1` repeats one schedule. */
const FIRST = Number(process.env['PLACEMENT_FIRST'] ?? 0);

/** How many schedules a test tries, unless it is told another number: in the quick tier a tenth. */
export function seedsOr(count: number): number {
  return Number(process.env['PLACEMENT_SEEDS'] ?? (isQuickTier ? Math.ceil(count / 10) : count));
}

/** @param from counts from the first that the tests try */
export function schedules(count: number, from = 0): Schedule[] {
  return Array.from({ length: count }, (_, at) => scheduleOf(FIRST + from + at));
}
