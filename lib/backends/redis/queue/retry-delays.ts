import { randomInt } from 'node:crypto';
import { systemClock } from '../../../core/index.js';

/** Pause between the attempts of a waiter that cannot be woken, plus or minus a half. */
const POLL_MS = 100;
/**
 * Maximum pause of a waiter in the queue, plus or minus an eighth: a wake-up may be lost. Stays below
 * `MAX_WAITER_SILENCE_MS`, after which the queue skips a waiter.
 */
const QUEUED_RETRY_MS = 3_500;
/**
 * Waiters that are answered within this time get the same maximum pause. They ask again together, and one command
 * carries all their calls.
 */
const SHARED_PAUSE_WINDOW_MS = 5;
/** Delay for each index in the queue, so that the waiters do not all retry at the end of a lease. */
const DELAY_PER_INDEX_MS = 25;
const MAX_INDEX_DELAY_MS = 250;

/** Pauses of the waiters of one process before their next attempts. */
export class RetryDelays {
  #queuedRetryMs = QUEUED_RETRY_MS;
  #chosenAt = -Infinity;

  /**
   * Returns the milliseconds until the next attempt of a caller.
   * @param leftMs milliseconds until the lease may end; negative if another program keeps a value without an end there
   * @param index index in the queue; negative for a caller that is not in it
   */
  getNextMs(leftMs: number, index: number): number {
    const endsInMs = leftMs < 0 ? Infinity : leftMs;
    if (index < 0) return Math.min(endsInMs, randomize(POLL_MS, POLL_MS / 2));
    const now = systemClock.now();
    if (now - this.#chosenAt > SHARED_PAUSE_WINDOW_MS) {
      this.#queuedRetryMs = randomize(QUEUED_RETRY_MS, QUEUED_RETRY_MS / 8);
      this.#chosenAt = now;
    }
    return Math.min(endsInMs + Math.min(index * DELAY_PER_INDEX_MS, MAX_INDEX_DELAY_MS), this.#queuedRetryMs);
  }
}

function randomize(ms: number, spreadMs: number): number {
  return ms - spreadMs + randomInt(2 * Math.ceil(spreadMs) + 1);
}
