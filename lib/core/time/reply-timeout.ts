import { clearImmediate, setImmediate } from './real-timers.js';
import type { Clock, Timer } from './timers.js';

/** Calls `onSilence` after `delayMs`. The caller cancels the timer when an answer comes. */
export function scheduleReplyTimeout(
  clock: Clock,
  delayMs: number,
  onSilence: () => void,
  options?: Parameters<Clock['schedule']>[2],
): Timer {
  let immediate: NodeJS.Immediate | undefined;
  // After a blocked event loop timers fire before answers are read. `setImmediate` lets the answers come first.
  const timer = clock.schedule(delayMs, () => (immediate = setImmediate(onSilence)), options);
  const cancel = (): void => {
    timer.cancel();
    clearImmediate(immediate);
  };
  return { cancel };
}
