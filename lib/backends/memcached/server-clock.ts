import { MemcachedError } from './error.js';

/**
 * How far a reading may be behind the time: the server's clock shows whole seconds (one), moves once a second (another
 * one), and its timer may be late (the rest).
 */
const BEHIND_S = 2.5;

/** Below, a date would be taken for a duration; above, it no longer fits the 32 bits that servers have for one. */
const DATES_FROM = 30 * 86_400;
const DATES_TO = 2 ** 31 - 1 - DATES_FROM;

/**
 * The clock of a server, by which its items expire, as far as we know it. A reading is never ahead of the time, and a
 * stale one (its timers stood still while it did) is further behind: so the higher of the last two counts.
 */
export class ServerClock {
  /** The server's seconds minus ours, by the last reading and the one before. */
  #offsetS: number;
  #formerOffsetS = -Infinity;

  /**
   * The first reading must come from a server that has just accepted our connection: the thread that does so moves the
   * clock.
   * @param sentAt when it was asked for, by our clock in milliseconds
   */
  constructor(
    seconds: number,
    public readAt: number,
  ) {
    this.#offsetS = offset(seconds, readAt);
  }

  read(seconds: number, sentAt: number): void {
    this.#formerOffsetS = this.#offsetS;
    this.#offsetS = offset(seconds, sentAt);
    this.readAt = sentAt;
  }

  /** Has shown itself to be wrong: the next lease is not asked for before it was read again. */
  doubt(): void {
    this.readAt = -Infinity;
  }

  /** A date for an item that the server is to keep for `ttlMs` from `now` on, or longer, never less. */
  expiryAfter(ttlMs: number, now: number): number {
    return Math.ceil(this.#lately(now) + BEHIND_S + ttlMs / 1_000);
  }

  /**
   * Microseconds since 1970: our own wall clock, held within the bounds of the server's, so that tokens of two
   * processes whose clocks agree are exact, and those of one whose clock is wrong are not off by more than those
   * bounds.
   */
  microseconds(now: number, wallMs = Date.now()): bigint {
    const lately = this.#lately(now);
    const seconds = Math.min(Math.max(wallMs / 1_000, lately), lately + BEHIND_S);
    return BigInt(Math.floor(seconds * 1_000)) * 1_000n;
  }

  /** The reading of the server's clock now: never more than `BEHIND_S` less than its time. */
  #lately(now: number): number {
    return Math.max(this.#offsetS, this.#formerOffsetS) + now / 1_000;
  }
}

function offset(seconds: number, sentAt: number): number {
  if (seconds >= DATES_FROM && seconds <= DATES_TO) return seconds - sentAt / 1_000;
  throw new MemcachedError('protocol', `the server's clock shows ${seconds} seconds since 1970`);
}
