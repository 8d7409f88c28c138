import type { QueryRunner } from 'typeorm';
import { Deadline } from '../../../core/index.js';
import { cleanError, isAnswer, isReadOnlyError, switchOverError } from '../connections/database-error.js';
import { isTrue, type Query } from '../connections/query.js';
import { runUnlogged } from '../connections/silent-logger.js';
import { TimeoutError, within } from '../connections/timeout.js';
import type { UnansweredSessions } from '../connections/unanswered-sessions.js';
import type { RowConnection } from './row-connection.js';
import type { RowLocks } from '../dialect/row-locks.js';
import type { RowPool } from './row-pool.js';

/** InnoDB counts whole seconds. A caller that gives up leaves a wait of at most this length behind. */
export const LONGEST_WAIT_MS = 1_000;

/** Where a row is, and how it is asked for. */
export interface RowTarget {
  readonly key: string;
  readonly table: string;
  readonly locks: RowLocks;
  readonly pool: RowPool;
  readonly unanswered: UnansweredSessions;
  readonly requestTimeoutMs: number;
  readonly ttlMs: number;
}

/** A transaction that has the key's row. `RowLease` is one that has a token, too. */
export class RowTransaction {
  private constructor(
    readonly target: RowTarget,
    readonly connection: RowConnection,
    readonly runner: QueryRunner,
  ) {}

  /** `null` when somebody else has the row. @param waitMs how long it stands in the database's line; 0: not at all */
  static async begin(target: RowTarget, connection: RowConnection, waitMs: number): Promise<RowTransaction | null> {
    for (;;) {
      const transaction = new RowTransaction(target, connection, await connection.lend());
      try {
        if (await transaction.#lock(waitMs)) return transaction;
        await transaction.#create();
      } catch (error) {
        const cause = cleanError(error);
        await transaction.#end(cause);
        if (!isAnswer(cause, target.locks.held)) throw cause;
        await target.unanswered.assertAnswered(target.key);
        return null;
      }
      await transaction.runner.release();
    }
  }

  /** The row is free, and the connection serves the next one. Never rejects. */
  async end(cause?: unknown): Promise<void> {
    await this.#end(cause);
    this.target.pool.release(this.connection);
  }

  /** False: nobody has made the row yet. */
  async #lock(waitMs: number): Promise<boolean> {
    const { key, table, locks, ttlMs, requestTimeoutMs } = this.target;
    await this.#inTime(() => this.runner.startTransaction('READ COMMITTED'));
    await locks.limit(this.query, { ttlMs, waitMs });
    const select = locks.lock(table, waitMs > 0 ? 'wait' : 'nowait');
    const limitMs = requestTimeoutMs + (waitMs > 0 ? LONGEST_WAIT_MS : 0);
    const [row] = await this.connection.ask(limitMs, select, [locks.row.columnOf(key)]);
    if (isTrue(row?.['is_read_only'])) throw switchOverError();
    if (row && waitMs > 0) await locks.settle(this.query);
    return row !== undefined;
  }

  /** Committed before anybody locks it, as those who wait for a row must see it. */
  async #create(): Promise<void> {
    const { key, table, locks } = this.target;
    await locks.create(this.query, table, key);
    await this.#inTime(() => this.runner.commitTransaction());
  }

  async #end(cause: unknown): Promise<void> {
    try {
      if (cause instanceof TimeoutError) this.target.unanswered.add(this.target.key, this.connection.client);
      if (cause instanceof TimeoutError || isReadOnlyError(cause)) this.connection.cut();
      else if (this.runner.isTransactionActive) await this.#inTime(() => this.runner.rollbackTransaction());
    } catch {
      this.connection.cut();
    }
    await this.runner.release().catch(() => undefined);
  }

  /** Each in its time. */
  readonly query: Query = (...statement) => this.connection.ask(this.target.requestTimeoutMs, ...statement);

  #inTime<T>(statement: () => Promise<T>): Promise<T> {
    const answer = runUnlogged(statement);
    return within(Deadline.after(this.target.requestTimeoutMs), 'the database gave no answer', answer);
  }
}
