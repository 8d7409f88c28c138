import { Deadline } from '../../../core/index.js';
import {
  cleanError,
  DatabaseError,
  isAnswer,
  isReadOnlyError,
  switchOverError,
} from '../connections/database-error.js';
import { isTrue, type Query } from '../connections/query.js';
import type { DriverTransaction } from '../connections/sql-database.js';
import { runUnlogged } from '../connections/unlogged.js';
import { TimeoutError, within } from '../connections/timeout.js';
import type { UnansweredSessions } from '../connections/unanswered-sessions.js';
import type { RowConnection } from './row-connection.js';
import type { RowLocks } from '../dialect/row-locks.js';
import type { RowPool } from './row-pool.js';

/** InnoDB counts whole seconds. A caller that gives up leaves a wait of at most this length behind. */
export const LONGEST_WAIT_MS = 1_000;

/** Two are enough, unless others delete rows. */
const MOST_ROUNDS = 5;

type Found = 'ours' | 'held' | 'missing';

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
  /** The server's session, where it has told its id. */
  #sessionId: string | undefined;

  private constructor(
    readonly target: RowTarget,
    readonly connection: RowConnection,
    readonly driver: DriverTransaction,
  ) {}

  /** `null` when somebody else has the row. @param waitMs how long it stands in the database's line; 0: not at all */
  static async begin(target: RowTarget, connection: RowConnection, waitMs: number): Promise<RowTransaction | null> {
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const transaction = new RowTransaction(target, connection, await connection.lend());
      const found = await transaction.#lockOrCreate(waitMs);
      if (found === 'ours') return transaction;
      if (found === 'held') return null;
    }
    throw new DatabaseError(
      'the row of the key is not to be seen after it was made: a trigger, or a policy of row-level security, may hide it',
      undefined,
    );
  }

  /** The row is free, and the connection serves the next one. Never rejects. */
  async end(cause?: unknown): Promise<void> {
    await this.#end(cause);
    this.target.pool.release(this.connection);
  }

  /** The transaction goes on with a row that is `ours`, and is over otherwise. */
  async #lockOrCreate(waitMs: number): Promise<Found> {
    const { key, locks, unanswered } = this.target;
    try {
      const found = await this.#lock(waitMs);
      if (found === 'ours') return found;
      if (found === 'missing' && (await this.#create())) return found;
      await this.#end(undefined);
    } catch (error) {
      const cause = cleanError(error);
      await this.#end(cause);
      if (!isAnswer(cause, locks.held)) throw cause;
    }
    await unanswered.assertAnswered(key);
    return 'held';
  }

  async #lock(waitMs: number): Promise<Found> {
    const { key, table, locks, ttlMs } = this.target;
    await this.#inTime(() => this.driver.begin());
    await locks.limit(this.query, { ttlMs, waitMs });
    const [row] =
      waitMs > 0 ? await locks.lockInLine(this.#patientQuery, table, key) : await locks.lock(this.query, table, key);
    if (!row) return 'missing';
    if (isTrue(row['is_read_only'])) throw switchOverError();
    if (isTrue(row['is_held'])) return 'held';
    if (waitMs > 0) await locks.settle(this.query);
    return 'ours';
  }

  /** Committed before anybody locks it, as those who wait for a row must see it. False: another process makes it. */
  async #create(): Promise<boolean> {
    const { key, table, locks } = this.target;
    if (!(await locks.create(this.query, table, key))) return false;
    await this.#inTime(() => this.driver.commit());
    await this.driver.release();
    return true;
  }

  async #end(cause: unknown): Promise<void> {
    try {
      if (cause instanceof TimeoutError) this.rememberSession();
      if (cause instanceof TimeoutError || isReadOnlyError(cause)) this.connection.cut();
      else if (this.driver.isActive) await this.#inTime(() => this.driver.rollback());
    } catch {
      this.connection.cut();
    }
    await this.driver.release().catch(() => undefined);
  }

  /** Before its connection is cut: the server may still carry out what it has not answered. */
  rememberSession(): void {
    const { key, locks, unanswered } = this.target;
    unanswered.add(key, this.#sessionId ?? locks.serverSessions.handshakeId(this.connection.client));
  }

  /** Each in its time. */
  readonly query: Query = (...statement) => this.#ask(this.target.requestTimeoutMs, ...statement);

  /** For one that may stand in line. */
  readonly #patientQuery: Query = (...statement) =>
    this.#ask(this.target.requestTimeoutMs + LONGEST_WAIT_MS, ...statement);

  async #ask(limitMs: number, ...statement: Parameters<Query>): ReturnType<Query> {
    const rows = await this.connection.ask(limitMs, ...statement);
    const id = rows[0]?.['session_id'];
    if (typeof id === 'string') this.#sessionId = id;
    return rows;
  }

  #inTime<T>(statement: () => Promise<T>): Promise<T> {
    const answer = runUnlogged(statement);
    return within(Deadline.after(this.target.requestTimeoutMs), 'the database gave no answer', answer);
  }
}
