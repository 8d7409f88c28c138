import { clearImmediate, setImmediate } from 'node:timers';
import type { Clock, Timer } from './timers.js';

/** Calls `onSilence` after `delayMs`, unless it is cancelled by an answer. */
export function replyTimeout(
  clock: Clock,
  delayMs: number,
  onSilence: () => void,
  options?: Parameters<Clock['schedule']>[2],
): Timer {
  let lastCall: NodeJS.Immediate | undefined;
  // After a blocked event loop timers come before the answers that have arrived meanwhile: those are read first.
  const timer = clock.schedule(delayMs, () => (lastCall = setImmediate(onSilence)), options);
  const cancel = (): void => {
    timer.cancel();
    clearImmediate(lastCall);
  };
  return { cancel };
}
