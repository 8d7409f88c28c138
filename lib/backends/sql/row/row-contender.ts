import type { Deadline, RefusedLease } from '../../../core/index.js';
import { TimeoutError } from '../connections/timeout.js';
import type { RowConnection } from './row-connection.js';
import type { StartPoolWait } from './row-pool.js';
import { MAX_ROW_WAIT_MS, type RowTarget, RowTransaction } from './row-transaction.js';

const HELD_REFUSAL: RefusedLease = { acquired: false, retryAfterMs: null };

export type RowOutcome = RowTransaction | RefusedLease;

export interface RowWaiter {
  deadline: Deadline;
  wake(): void;
}

/**
 * One owner's request for the row, which lasts over several calls of `tryAcquire`. It waits for a connection of the
 * pool, and then in the database's own queue for the row.
 */
export class RowContender {
  /** The latest outcome. A refusal may be followed by another outcome. A row or a failure is the last one. */
  outcome: Promise<RowOutcome>;
  /** Promise that resolves at the end of the request: to true after a row or a failure, else to false. */
  readonly completion: Promise<boolean>;
  #publishedOutcome: RowOutcome | undefined;
  #resolveFirstOutcome: ((outcome: Promise<RowOutcome>) => void) | undefined;
  #wasRefused = false;
  #isAbandoned = false;
  #poolWaitController: AbortController | undefined;

  constructor(
    private readonly target: RowTarget,
    /** Returns `undefined` for an owner that does not wait. */
    private readonly getWaiter: () => RowWaiter | undefined,
  ) {
    this.outcome = new Promise((resolve) => (this.#resolveFirstOutcome = resolve));
    this.completion = this.#run();
  }

  /**
   * Ends the request, and frees the row if the request has got one. A wait in the database's queue cannot be cancelled:
   * `#run` frees the row when that wait ends.
   */
  async abandon(): Promise<void> {
    this.#isAbandoned = true;
    this.#poolWaitController?.abort();
    if (this.#publishedOutcome instanceof RowTransaction) await this.#publishedOutcome.end();
  }

  async #run(): Promise<boolean> {
    try {
      const row = await this.#contendOnAnyConnection();
      if (row && this.#isAbandoned) await row.end();
      else this.#publishIfChanged(row ?? HELD_REFUSAL);
      return row !== null;
    } catch (error) {
      const failure = Promise.reject(error);
      // If the owner has given up, nothing else handles the rejection, which would end the process.
      failure.catch(() => undefined);
      this.#publishOutcome(failure);
      return true;
    }
  }

  /** Tries another connection when one that was used before turns out to be dead. */
  async #contendOnAnyConnection(): Promise<RowTransaction | null> {
    const { pool } = this.target;
    for (;;) {
      const connection = await pool.take(this.getWaiter() && this.#startPoolWait);
      const { wasUsedBefore } = connection;
      let row: RowTransaction | null = null;
      try {
        row = await this.#contendOn(connection);
        return row;
      } catch (error) {
        if (!wasUsedBefore || !connection.endSignal.aborted || this.#isAbandoned) throw error;
        if (error instanceof TimeoutError) pool.closeIdleAfterSilence();
      } finally {
        if (!row) pool.release(connection);
      }
    }
  }

  /** First requests the row without a wait, to learn that the server answers. Then waits, for short times. */
  async #contendOn(connection: RowConnection): Promise<RowTransaction | null> {
    let waitMs = this.#wasRefused ? this.#nextWaitMs : 0;
    for (;;) {
      if (this.#isAbandoned) return null;
      if (this.#wasRefused) this.#publishIfChanged(HELD_REFUSAL);
      const row = await RowTransaction.begin(this.target, connection, waitMs);
      waitMs = this.#nextWaitMs;
      if (row || waitMs === 0) return row;
      this.#wasRefused = true;
    }
  }

  get #nextWaitMs(): number {
    return Math.min(MAX_ROW_WAIT_MS, this.getWaiter()?.deadline.remainingMs ?? 0);
  }

  readonly #startPoolWait: StartPoolWait = (obstacle) => {
    this.#poolWaitController = new AbortController();
    this.#publishIfChanged({ ...HELD_REFUSAL, obstacle });
    return this.#poolWaitController.signal;
  };

  #publishIfChanged(outcome: RowOutcome): void {
    if (outcome === this.#publishedOutcome) return;
    this.#publishedOutcome = outcome;
    this.#publishOutcome(Promise.resolve(outcome));
  }

  #publishOutcome(outcome: Promise<RowOutcome>): void {
    if (this.#resolveFirstOutcome) this.#resolveFirstOutcome(outcome);
    else {
      this.outcome = outcome;
      this.getWaiter()?.wake();
    }
    this.#resolveFirstOutcome = undefined;
  }
}
