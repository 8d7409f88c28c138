import { randomInt } from 'node:crypto';
import { pause, systemClock } from '../time/timers.js';

const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 1_000;

/**
 * Asks in the background, less and less often, until `ask` says that there was an answer, or nobody wants one any more.
 * Pauses differ by chance, or all processes would meet a server that comes back at the same moments.
 */
export async function retryUntilAnswered(ask: () => Promise<boolean>, isWanted: () => boolean): Promise<void> {
  for (let delay = FIRST_RETRY_MS; isWanted() && !(await ask()); delay = Math.min(delay * 2, LONGEST_RETRY_MS)) {
    await pause(systemClock, delay / 2 + randomInt(delay), { background: true });
  }
}
