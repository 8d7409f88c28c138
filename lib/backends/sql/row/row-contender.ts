import type { Deadline, RefusedLease } from '../../../core/index.js';
import { TimeoutError } from '../connections/timeout.js';
import type { RowConnection } from './row-connection.js';
import type { PoolLine } from './row-pool.js';
import { LONGEST_WAIT_MS, type RowTarget, RowTransaction } from './row-transaction.js';

const HELD: RefusedLease = { acquired: false, retryAfterMs: null };

export type RowNews = RowTransaction | RefusedLease;

/** A caller who waits for a row. */
export interface RowWaiter {
  deadline: Deadline;
  wake(): void;
}

/**
 * One owner's way to the row: over a connection of the pool, and through the database's own line. It goes on in the
 * background for as long as somebody waits.
 */
export class RowContender {
  /** The latest news. Pending until there are some. A row and a failure are the last ones. */
  news: Promise<RowNews>;
  /** Settles when nothing of it is under way any more: whether the owner has a row, or a failure, to hear of. */
  readonly over: Promise<boolean>;
  #last: RowNews | undefined;
  #tellFirst: ((news: Promise<RowNews>) => void) | undefined;
  #refused = false;
  #isGivenUp = false;
  #inLine: AbortController | undefined;

  /** @param waiter who waits now, and is woken by all news but the first; `undefined`: nobody does */
  constructor(
    private readonly target: RowTarget,
    private readonly waiter: () => RowWaiter | undefined,
  ) {
    this.news = new Promise((resolve) => (this.#tellFirst = resolve));
    this.over = this.#run();
  }

  /**
   * Ends this contender. A wait for a row cannot be called off: it ends by itself, and a row that it brings is given
   * back.
   */
  async abandon(): Promise<void> {
    this.#isGivenUp = true;
    this.#inLine?.abort();
    if (this.#last instanceof RowTransaction) await this.#last.end();
  }

  async #run(): Promise<boolean> {
    try {
      const row = await this.#onSomeConnection();
      if (row && this.#isGivenUp) await row.end();
      else this.#tell(row ?? HELD);
      return row !== null;
    } catch (error) {
      const failure = Promise.reject(error);
      // The owner may be gone.
      failure.catch(() => undefined);
      this.#publish(failure);
      return true;
    }
  }

  /** One that served before may have died in its sleep, and our transaction with it: another one is as good. */
  async #onSomeConnection(): Promise<RowTransaction | null> {
    const { pool } = this.target;
    for (;;) {
      const connection = await pool.take(this.waiter() && this.#waitInLine);
      const { served } = connection;
      let row: RowTransaction | null = null;
      try {
        row = await this.#insist(connection);
        return row;
      } catch (error) {
        if (!served || !connection.ended.aborted || this.#isGivenUp) throw error;
        if (error instanceof TimeoutError) pool.replaceIdle();
      } finally {
        if (!row) pool.release(connection);
      }
    }
  }

  /** Asks without waiting first, which shows that the server is there. Then waits in line, a while at a time. */
  async #insist(connection: RowConnection): Promise<RowTransaction | null> {
    let waitMs = this.#refused ? this.#waitMs : 0;
    for (;;) {
      if (this.#isGivenUp) return null;
      if (this.#refused) this.#tell(HELD);
      const row = await RowTransaction.begin(this.target, connection, waitMs);
      waitMs = this.#waitMs;
      if (row || waitMs === 0) return row;
      this.#refused = true;
    }
  }

  get #waitMs(): number {
    return Math.min(LONGEST_WAIT_MS, this.waiter()?.deadline.remainingMs ?? 0);
  }

  readonly #waitInLine: PoolLine = (obstacle) => {
    this.#inLine = new AbortController();
    this.#tell({ ...HELD, obstacle });
    return this.#inLine.signal;
  };

  #tell(news: RowNews): void {
    if (news === this.#last) return;
    this.#last = news;
    this.#publish(Promise.resolve(news));
  }

  #publish(news: Promise<RowNews>): void {
    if (this.#tellFirst) this.#tellFirst(news);
    else {
      this.news = news;
      this.waiter()?.wake();
    }
    this.#tellFirst = undefined;
  }
}
