import { randomInt } from 'node:crypto';
import { systemClock } from '../../../core/index.js';

/** Pause between the attempts of a waiter that cannot be woken, plus or minus a half. */
const POLL_MS = 100;
/**
 * Maximum pause of a waiter in the queue, plus or minus an eighth: a wake-up may be lost. Stays below
 * `MAX_WAITER_SILENCE_MS`, after which the queue skips a waiter.
 */
const MAX_PAUSE_MS = 3_500;
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
  #maxPauseMs = MAX_PAUSE_MS;
  #maxPauseChosenAt = -Infinity;

  /**
   * Returns the milliseconds until the next attempt of a caller.
   * @param leftMs milliseconds until the lease may end; negative for a value without an end, set by another program
   * @param index index in the queue; negative for a caller that is not in it
   */
  getNextMs(leftMs: number, index: number): number {
    const endsInMs = leftMs < 0 ? Infinity : leftMs;
    if (index < 0) return Math.min(endsInMs, randomize(POLL_MS, POLL_MS / 2));
    const now = systemClock.now();
    if (now - this.#maxPauseChosenAt > SHARED_PAUSE_WINDOW_MS) {
      this.#maxPauseMs = randomize(MAX_PAUSE_MS, MAX_PAUSE_MS / 8);
      this.#maxPauseChosenAt = now;
    }
    return Math.min(endsInMs + Math.min(index * DELAY_PER_INDEX_MS, MAX_INDEX_DELAY_MS), this.#maxPauseMs);
  }
}

function randomize(ms: number, spreadMs: number): number {
  return ms - spreadMs + randomInt(2 * Math.ceil(spreadMs) + 1);
}
