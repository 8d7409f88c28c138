import { randomInt } from 'node:crypto';
import { pause, systemClock } from '../time/timers.js';

const FIRST_RETRY_MS = 20;
const MAX_RETRY_MS = 1_000;

/**
 * Repeats `attempt` with growing pauses until it resolves to true, or until `isWanted` returns false. The pauses are
 * random, so that not all processes contact a restarted server at once, and do not keep the process alive.
 */
export async function retryUntilAnswered(attempt: () => Promise<boolean>, isWanted: () => boolean): Promise<void> {
  for (let delayMs = FIRST_RETRY_MS; isWanted() && !(await attempt()); delayMs = Math.min(delayMs * 2, MAX_RETRY_MS)) {
    await pause(systemClock, delayMs / 2 + randomInt(delayMs), { background: true });
  }
}
