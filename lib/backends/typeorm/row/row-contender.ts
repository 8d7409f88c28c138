import { randomInt } from 'node:crypto';
import type { QueryRunner } from 'typeorm';
import { type AcquireRequest, Deadline, LockError } from '../../../core/index.js';
import { pause } from '../../../core/timers.js';
import { cleanError, DatabaseError } from '../clean-error.js';
import { rowsOf } from '../rows-of.js';
import type { Query } from '../sql-dialect.js';
import { within } from '../time-limit.js';
import type { RowConnection } from './row-connection.js';
import { RowLease, SAVEPOINT } from './row-lease.js';
import type { RowLocks } from './row-locks.js';
import type { RowPool } from './row-pool.js';

/** InnoDB counts whole seconds; whoever gives up meanwhile leaves a wait of this length behind, and then nothing. */
const WAIT_MS = 1_000;
const RETRY_MS = 50;

export interface RowTarget {
  readonly key: string;
  readonly table: string;
  readonly locks: RowLocks;
  readonly pool: RowPool;
  readonly statementTimeoutMs: number;
}

/** One caller's way to the row. Goes on in the background until nothing of it is left, when the caller has given up. */
export class RowContender {
  /** Somebody else had the row when we last looked. */
  refused = false;
  #givenUp = false;

  constructor(
    private readonly target: RowTarget,
    private readonly request: AcquireRequest,
    private readonly patienceMs: number,
  ) {}

  giveUp(): void {
    this.#givenUp = true;
  }

  /** `null`: the row was somebody else's until the deadline, or until we gave up. */
  async run(): Promise<RowLease | null> {
    const { deadline } = this.request;
    const once = deadline.passed;
    const connection = await this.target.pool.take(once ? Deadline.after(0) : deadline);
    let lease: RowLease | null = null;
    try {
      lease = await this.#insist(connection, once);
    } finally {
      if (!lease) this.target.pool.giveBack(connection);
    }
    if (!lease || !this.#givenUp) return lease;
    await lease.release();
    return null;
  }

  /** First asks without waiting, which shows that the server is there; then waits in line for the row, a while at a time. */
  async #insist(connection: RowConnection, once: boolean): Promise<RowLease | null> {
    const { deadline } = this.request;
    const patience = Deadline.after(this.patienceMs, deadline.clock);
    for (;;) {
      try {
        const lease = await this.#attempt(connection, this.refused ? Math.min(WAIT_MS, deadline.remainingMs) : 0);
        if (lease) return lease;
        this.refused = true;
        if (once || deadline.passed || this.#givenUp) return null;
      } catch (error) {
        const hopeless = error instanceof LockError || connection.ended.aborted || patience.passed;
        if (hopeless || once || deadline.passed || this.#givenUp) throw error;
        await pause(deadline.clock, randomInt(RETRY_MS));
      }
    }
  }

  /** `null` when somebody else has the row. */
  async #attempt(connection: RowConnection, waitMs: number): Promise<RowLease | null> {
    const { key, table, locks } = this.target;
    const runner = await connection.lend();
    const query: Query = async (sql, parameters) => rowsOf(await this.#inTime(runner.query(sql, [...parameters])));
    try {
      await this.#inTime(runner.startTransaction('READ COMMITTED'));
      if (waitMs > 0) await locks.limitWait(query, waitMs);
      const select = `${locks.token(table)} for update${waitMs > 0 ? '' : ' nowait'}`;
      const [row] = await query(select, [locks.row.columnOf(key)]);
      if (row) return await this.#lease(connection, runner, query);
      // Committed before anybody locks it, as those who wait for a row must see it.
      await this.#inTime(runner.rollbackTransaction());
      await locks.create(query, table, key);
    } catch (error) {
      await this.#end(connection, runner);
      const cause = cleanError(error);
      if (cause instanceof DatabaseError && locks.isHeld(cause)) return null;
      throw cause;
    }
    await runner.release();
    return this.#attempt(connection, waitMs);
  }

  /** The row is ours. The server has just heard from us when the token comes, so the lease counts from there. */
  async #lease(connection: RowConnection, runner: QueryRunner, query: Query): Promise<RowLease> {
    const { key, table, locks, pool, statementTimeoutMs } = this.target;
    const { metadata, deadline, ttlMs: askedMs } = this.request;
    const ttlMs = locks.ttlMs(askedMs);
    await locks.settle(query, ttlMs);
    const sentAt = deadline.clock.now();
    const fencingToken = await locks.row.raise(query, table, key, metadata);
    if (fencingToken === undefined) throw new DatabaseError('the row of the key vanished', undefined);
    await query(`savepoint ${SAVEPOINT}`, []);
    const times = { ttlMs, sentAt, statementTimeoutMs };
    const lease = new RowLease({ key, table, locks, connection, runner, fencingToken, ...times });
    lease.onOver(() => pool.giveBack(connection));
    return lease;
  }

  async #end(connection: RowConnection, runner: QueryRunner): Promise<void> {
    try {
      if (runner.isTransactionActive) await this.#inTime(runner.rollbackTransaction());
    } catch {
      connection.cut();
    }
    await runner.release().catch(() => undefined);
  }

  /** One statement, which may be a wait for the row. */
  #inTime<T>(statement: Promise<T>): Promise<T> {
    return within(Deadline.after(WAIT_MS + this.target.statementTimeoutMs), 'the database gave no answer', statement);
  }
}
