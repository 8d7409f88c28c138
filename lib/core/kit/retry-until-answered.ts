import { randomInt } from 'node:crypto';
import { pause, systemClock } from '../time/timers.js';

const FIRST_RETRY_MS = 20;
const MAX_RETRY_MS = 1_000;

/**
 * Repeats `ask` in the background, less and less often, until it resolves to true, or until no answer is wanted. Pauses
 * are random, so that processes do not ask a server that comes back at the same moments.
 */
export async function retryUntilAnswered(ask: () => Promise<boolean>, isWanted: () => boolean): Promise<void> {
  for (let delay = FIRST_RETRY_MS; isWanted() && !(await ask()); delay = Math.min(delay * 2, MAX_RETRY_MS)) {
    await pause(systemClock, delay / 2 + randomInt(delay), { background: true });
  }
}
