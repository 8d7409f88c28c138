import type { Deadline } from '../time/deadline.js';
import { TimerWheel, WheelTimer } from '../time/timer-wheel.js';
import type { Timer } from '../time/timers.js';

/**
 * Long pauses end at the times of a grid, so that a store can send the requests of many waiters as one. Timers of Node
 * that are due at once run one by one, and each would send a request of its own.
 */
const PAUSE_GRID_MS = 10;
const LONG_PAUSE_MS = 1_000;

/** Calls `onEnd` after `delayMs`, or at the deadline if that is earlier. */
export function schedulePauseEnd(delayMs: number, { clock, remainingMs }: Deadline, onEnd: () => void): Timer {
  const isLong = delayMs >= LONG_PAUSE_MS && delayMs + PAUSE_GRID_MS < remainingMs;
  if (!isLong) return clock.schedule(Math.min(delayMs, remainingMs), onEnd);
  const timer = new WheelTimer(TimerWheel.of(clock), onEnd);
  timer.setAtOrAfter(clock.now() + delayMs, PAUSE_GRID_MS);
  return timer;
}
