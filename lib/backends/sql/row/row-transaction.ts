import { Deadline } from '../../../core/index.js';
import {
  toErrorWithoutStatement,
  DatabaseError,
  hasErrorCode,
  isConnectionGone,
  isReadOnlyError,
  createReadOnlyServerError,
} from '../connections/database-error.js';
import { isTrue, type Query } from '../connections/query.js';
import type { DriverTransaction } from '../connections/sql-database.js';
import { runUnlogged } from '../connections/unlogged.js';
import { TimeoutError, settleByDeadline } from '../connections/timeout.js';
import type { UnansweredSessions } from '../connections/unanswered-sessions.js';
import type { RowConnection } from './row-connection.js';
import type { RowLocks } from '../dialect/row-locks.js';
import type { RowPool } from './row-pool.js';

/**
 * Maximum milliseconds of one wait in the database's queue. A wait cannot be cancelled. InnoDB counts waits in whole
 * seconds.
 */
export const MAX_ROW_WAIT_MS = 1_000;

/** Maximum number of attempts to lock or create the row. A missing row takes two, and more if others delete it. */
const MAX_ROUNDS = 5;

/** Whether this transaction has locked the row, another one has, or there is no row. */
type RowState = 'ours' | 'held' | 'missing';

/** The row to lock, and all that a transaction needs to lock it. */
export interface RowTarget {
  readonly key: string;
  readonly table: string;
  readonly locks: RowLocks;
  readonly pool: RowPool;
  readonly unansweredSessions: UnansweredSessions;
  readonly requestTimeoutMs: number;
  readonly ttlMs: number;
}

/** A transaction that has locked the key's row. */
export class RowTransaction {
  #sessionId: string | undefined;

  private constructor(
    readonly target: RowTarget,
    readonly connection: RowConnection,
    readonly driverTransaction: DriverTransaction,
  ) {}

  /**
   * Locks the row in a new transaction. Resolves to `null` when another transaction has the row.
   * @param waitMs 0: no wait in the database's queue
   */
  static async begin(target: RowTarget, connection: RowConnection, waitMs: number): Promise<RowTransaction | null> {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const transaction = new RowTransaction(target, connection, await connection.createTransaction());
      const rowState = await transaction.#lockOrCreate(waitMs);
      if (rowState === 'ours') return transaction;
      if (rowState === 'held') return null;
    }
    throw new DatabaseError(
      'the row of the key is not to be seen after it was made: a trigger, or a policy of row-level security, may hide it',
      undefined,
    );
  }

  /** Frees the row, gives the connection back to the pool, and never rejects. */
  async end(cause?: unknown): Promise<void> {
    await this.#endTransaction(cause);
    this.target.pool.release(this.connection);
  }

  /** Locks the row, or creates a missing one. Ends the transaction unless the row is `ours`. */
  async #lockOrCreate(waitMs: number): Promise<RowState> {
    const { key, locks, unansweredSessions } = this.target;
    try {
      const rowState = await this.#lockRow(waitMs);
      if (rowState === 'ours') return rowState;
      if (rowState === 'missing' && (await this.#createRow())) return rowState;
      await this.#endTransaction(undefined);
    } catch (error) {
      const cause = toErrorWithoutStatement(error);
      await this.#endTransaction(cause);
      if (!hasErrorCode(cause, locks.heldCodePattern)) throw cause;
    }
    await unansweredSessions.assertNoSessionWorking(key);
    return 'held';
  }

  async #lockRow(waitMs: number): Promise<RowState> {
    const { key, table, locks, ttlMs } = this.target;
    await this.#runInTime(() => this.driverTransaction.begin());
    await locks.setLimits(this.query, { ttlMs, waitMs });
    const [row] =
      waitMs > 0
        ? await locks.lockRowAfterWait(this.#queryWithWait, table, key, waitMs)
        : await locks.tryLockRow(this.query, table, key);
    if (!row) return 'missing';
    if (isTrue(row['is_read_only'])) throw createReadOnlyServerError();
    if (isTrue(row['is_held'])) return 'held';
    if (waitMs > 0) await locks.restoreLimits(this.query);
    return 'ours';
  }

  /** Commits the row, so that other waiters see it. Resolves to false when another process is inserting it. */
  async #createRow(): Promise<boolean> {
    const { key, table, locks } = this.target;
    if (!(await locks.createRow(this.query, table, key))) return false;
    await this.#runInTime(() => this.driverTransaction.commit());
    await this.driverTransaction.release();
    return true;
  }

  async #endTransaction(cause: unknown): Promise<void> {
    try {
      if (cause instanceof TimeoutError) this.rememberSession();
      const isUnusable = cause instanceof TimeoutError || isReadOnlyError(cause) || isConnectionGone(cause);
      // The driver may report the end of the connection before the socket does.
      if (isUnusable) this.connection.destroy(cause);
      else if (this.driverTransaction.isActive) await this.#runInTime(() => this.driverTransaction.rollback());
    } catch {
      this.connection.destroy();
    }
    await this.driverTransaction.release().catch(() => undefined);
  }

  /** Remembers the session before its connection is destroyed: the server may still carry out the last statement. */
  rememberSession(): void {
    const { key, locks, unansweredSessions } = this.target;
    unansweredSessions.rememberSession(
      key,
      this.#sessionId ?? locks.serverSessions.getSessionId(this.connection.client),
    );
  }

  readonly query: Query = (...statement) => this.#sendInOrder(this.target.requestTimeoutMs, ...statement);

  readonly #queryWithWait: Query = (...statement) =>
    this.#sendInOrder(this.target.requestTimeoutMs + MAX_ROW_WAIT_MS, ...statement);

  async #sendInOrder(timeoutMs: number, ...statement: Parameters<Query>): ReturnType<Query> {
    const rows = await this.connection.sendInOrder(timeoutMs, ...statement);
    const id = rows[0]?.['session_id'];
    if (typeof id === 'string') this.#sessionId = id;
    return rows;
  }

  #runInTime<T>(statement: () => Promise<T>): Promise<T> {
    const answer = runUnlogged(statement);
    return settleByDeadline(Deadline.after(this.target.requestTimeoutMs), 'the database gave no answer', answer);
  }
}
