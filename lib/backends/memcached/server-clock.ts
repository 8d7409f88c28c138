import { MemcachedError } from './error.js';

/**
 * Maximum lag of a reading in seconds: the clock shows whole seconds (1), advances once a second (1), and its timer may
 * be late (0.5).
 */
const MAX_LAG_S = 2.5;

/**
 * Bounds of a server's clock in seconds since 1970. Below the minimum, a server reads an exptime as a duration. The
 * maximum leaves 30 days, the longest TTL, before the 32 bits of a date end.
 */
const MIN_DATE_S = 30 * 86_400;
const MAX_DATE_S = 2 ** 31 - 1 - MIN_DATE_S;

/**
 * Differences in seconds between a server's clock and that of this process, by one reading. The server has read its clock
 * between the request and the reply.
 */
interface ClockReading {
  readonly minOffsetS: number;
  readonly maxOffsetS: number;
}

/**
 * Estimate of a server's clock, by which its items expire. A reading is never ahead of the server's time. After a
 * suspension of the server a reading lags more, so the higher one of the last two readings is used.
 */
export class ServerClock {
  #reading: ClockReading;
  #previousReading: ClockReading;

  /**
   * The first reading must come from a server that has just accepted a connection: a server then advances its clock.
   * @param readAt time of the request, in milliseconds of this process's clock
   * @param receivedAt time of the reply
   */
  constructor(
    seconds: number,
    public readAt: number,
    receivedAt: number,
  ) {
    this.#reading = createReading(seconds, readAt, receivedAt);
    this.#previousReading = this.#reading;
  }

  record(seconds: number, sentAt: number, receivedAt: number): void {
    this.#previousReading = this.#reading;
    this.#reading = createReading(seconds, sentAt, receivedAt);
    this.readAt = sentAt;
  }

  /** Makes the reading count as too old, so that the clock is read again before the next request. */
  invalidate(): void {
    this.readAt = -Infinity;
  }

  /** Returns an exptime with which the server keeps an item for at least `ttlMs` from `now` on. */
  exptimeAfter(ttlMs: number, now: number): number {
    return Math.ceil(this.#upperBoundS(now) + ttlMs / 1_000);
  }

  /**
   * Returns microseconds since 1970 by this process's wall clock, limited to the bounds of the server's clock. A wrong
   * wall clock distorts tokens by no more than these bounds.
   */
  microsecondsAt(now: number, wallMs = Date.now()): bigint {
    const seconds = Math.min(Math.max(wallMs / 1_000, this.#lowerBoundS(now)), this.#upperBoundS(now));
    return BigInt(Math.floor(seconds * 1_000)) * 1_000n;
  }

  /** Returns bounds of the server's time in milliseconds: `lowerBoundMs` or at most `uncertaintyMs` later. */
  boundsAt(now: number): { readonly lowerBoundMs: number; readonly uncertaintyMs: number } {
    const lowerBoundMs = this.#lowerBoundS(now) * 1_000;
    return { lowerBoundMs, uncertaintyMs: this.#upperBoundS(now) * 1_000 - lowerBoundMs };
  }

  /** Returns a time in seconds that is never ahead of the server's time. */
  #lowerBoundS(now: number): number {
    return Math.max(this.#reading.minOffsetS, this.#previousReading.minOffsetS) + now / 1_000;
  }

  /** Returns a time in seconds that is never behind the server's time. */
  #upperBoundS(now: number): number {
    return Math.max(this.#reading.maxOffsetS, this.#previousReading.maxOffsetS) + now / 1_000 + MAX_LAG_S;
  }
}

function createReading(seconds: number, sentAt: number, receivedAt: number): ClockReading {
  if (seconds >= MIN_DATE_S && seconds <= MAX_DATE_S)
    return { minOffsetS: seconds - receivedAt / 1_000, maxOffsetS: seconds - sentAt / 1_000 };
  throw new MemcachedError('protocol', `the server's clock shows ${seconds} seconds since 1970`);
}
