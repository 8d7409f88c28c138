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
 * Estimate of a server's clock, by which its items expire. A reading is never ahead of the server's time. After a
 * suspension of the server a reading lags more, so the higher one of the last two offsets is used.
 */
export class ServerClock {
  /** Seconds of the server's clock minus those of this process, by the last reading and the one before. */
  #offsetS: number;
  #previousOffsetS = -Infinity;

  /**
   * The first reading must come from a server that has just accepted a connection: a server then advances its clock.
   * @param readAt time of the request, in milliseconds of this process's clock
   */
  constructor(
    seconds: number,
    public readAt: number,
  ) {
    this.#offsetS = computeOffset(seconds, readAt);
  }

  record(seconds: number, sentAt: number): void {
    this.#previousOffsetS = this.#offsetS;
    this.#offsetS = computeOffset(seconds, sentAt);
    this.readAt = sentAt;
  }

  invalidate(): void {
    this.readAt = -Infinity;
  }

  /** Returns an exptime with which the server keeps an item for at least `ttlMs` from `now` on. */
  exptimeAfter(ttlMs: number, now: number): number {
    return Math.ceil(this.#lowerBoundS(now) + MAX_LAG_S + ttlMs / 1_000);
  }

  /**
   * Returns microseconds since 1970 by this process's wall clock, limited to the bounds of the server's clock. A wrong
   * wall clock distorts tokens by no more than these bounds.
   */
  microsecondsAt(now: number, wallMs = Date.now()): bigint {
    const lowerBoundS = this.#lowerBoundS(now);
    const seconds = Math.min(Math.max(wallMs / 1_000, lowerBoundS), lowerBoundS + MAX_LAG_S);
    return BigInt(Math.floor(seconds * 1_000)) * 1_000n;
  }

  /** Returns bounds of the server's time in milliseconds: `lowerBoundMs` or at most `uncertaintyMs` later. */
  boundsAt(now: number): { readonly lowerBoundMs: number; readonly uncertaintyMs: number } {
    return { lowerBoundMs: this.#lowerBoundS(now) * 1_000, uncertaintyMs: MAX_LAG_S * 1_000 };
  }

  /** Returns a time in seconds that is at most `MAX_LAG_S` behind the server's time, and never ahead of it. */
  #lowerBoundS(now: number): number {
    return Math.max(this.#offsetS, this.#previousOffsetS) + now / 1_000;
  }
}

function computeOffset(seconds: number, sentAt: number): number {
  if (seconds >= MIN_DATE_S && seconds <= MAX_DATE_S) return seconds - sentAt / 1_000;
  throw new MemcachedError('protocol', `the server's clock shows ${seconds} seconds since 1970`);
}
