import { MemcachedError } from './error.js';

/**
 * A reading may be so late: the clock shows whole seconds (1), moves once a second (1), and its timer may lag (0.5).
 */
const BEHIND_S = 2.5;

/** A server reads a lower number as a duration. Servers have 32 bits for a date. */
const DATES_FROM = 30 * 86_400;
const DATES_TO = 2 ** 31 - 1 - DATES_FROM;

/**
 * The clock of a server, by which its items expire, as far as we know it. A reading is never ahead of the time. One of
 * a server that stood still is further behind, so the higher of the last two counts.
 */
export class ServerClock {
  /** The server's seconds minus ours, by the last reading and the one before. */
  #offsetS: number;
  #formerOffsetS = -Infinity;

  /**
   * The first reading must come from a server that has just accepted our connection, because that moves its clock.
   * @param readAt when it was asked for, by our clock in milliseconds
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

  /** It was wrong: it is read again before the next lease is asked for. */
  doubt(): void {
    this.readAt = -Infinity;
  }

  /** A date for an item that the server keeps for `ttlMs` from `now` on, or longer, never less. */
  expiryAfter(ttlMs: number, now: number): number {
    return Math.ceil(this.#lately(now) + BEHIND_S + ttlMs / 1_000);
  }

  /**
   * Microseconds since 1970 by our own wall clock, held within the bounds of the server's. Tokens are exact where wall
   * clocks agree, and where one is wrong, off by no more than those bounds.
   */
  microseconds(now: number, wallMs = Date.now()): bigint {
    const lately = this.#lately(now);
    const seconds = Math.min(Math.max(wallMs / 1_000, lately), lately + BEHIND_S);
    return BigInt(Math.floor(seconds * 1_000)) * 1_000n;
  }

  /** The server's time in milliseconds: it is not earlier, and by no more than `aheadMs` later. */
  bounds(now: number): { readonly nowMs: number; readonly aheadMs: number } {
    return { nowMs: this.#lately(now) * 1_000, aheadMs: BEHIND_S * 1_000 };
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
