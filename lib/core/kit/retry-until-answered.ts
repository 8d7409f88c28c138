import { randomInt } from 'node:crypto';
import { pause, systemClock } from '../time/timers.js';

const FIRST_RETRY_MS = 20;
const MAX_RETRY_MS = 1_000;

/**
 * Repeats `ask` with growing pauses until it resolves to true, or until `isWanted` returns false. The pauses do not keep
 * the process alive. They are random, so that processes do not all ask a restarted server at once.
 */
export async function retryUntilAnswered(ask: () => Promise<boolean>, isWanted: () => boolean): Promise<void> {
  for (let delay = FIRST_RETRY_MS; isWanted() && !(await ask()); delay = Math.min(delay * 2, MAX_RETRY_MS)) {
    await pause(systemClock, delay / 2 + randomInt(delay), { background: true });
  }
}
