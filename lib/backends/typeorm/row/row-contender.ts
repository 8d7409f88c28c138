import { randomInt } from 'node:crypto';
import type { QueryRunner } from 'typeorm';
import { type AcquireRequest, Deadline, LockError, pause, trustedUntil } from '../../../core/index.js';
import { cleanError, DatabaseError } from '../clean-error.js';
import { rowsOf } from '../rows-of.js';
import type { Query } from '../sql-dialect.js';
import { TimeLimitError, within } from '../time-limit.js';
import type { RowConnection } from './row-connection.js';
import { RowLease } from './row-lease.js';
import type { RowLocks } from './row-locks.js';
import type { RowPool } from './row-pool.js';

/** InnoDB counts whole seconds; whoever gives up meanwhile leaves a wait of this length behind, and then nothing. */
const WAIT_MS = 1_000;
const RETRY_MS = 50;
/** A server that is there answers a statement within this time, if it has not to wait for a row. */
const SILENCE_MS = 100;

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
  /** By when a server that is there has answered what it was asked last. At first: by when the pool has said why it has nothing. */
  answerDueAt: number;
  #givenUp = false;
  /** When the first of the failures in a row came. */
  #failingSince: number | undefined;

  constructor(
    private readonly target: RowTarget,
    private readonly request: AcquireRequest,
    private readonly patienceMs: number,
  ) {
    this.answerDueAt = request.deadline.at + SILENCE_MS;
  }

  giveUp(): void {
    this.#givenUp = true;
  }

  /** `null`: the row was somebody else's until the deadline, or until we gave up. */
  async run(): Promise<RowLease | null> {
    const once = this.request.deadline.passed;
    for (;;) {
      try {
        const lease = await this.#onSomeConnection(once);
        if (!lease || !this.#givenUp) return lease;
        await lease.release();
        return null;
      } catch (error) {
        if (this.#isHopeless(error, once)) throw error;
        await pause(this.request.deadline.clock, randomInt(RETRY_MS));
      }
    }
  }

  /** One that served before may have died in its sleep, and our transaction with it: another one is as good. */
  async #onSomeConnection(once: boolean): Promise<RowLease | null> {
    const { pool } = this.target;
    for (;;) {
      const connection = await pool.take(once ? Deadline.after(0) : this.request.deadline);
      const { served } = connection;
      let lease: RowLease | null = null;
      try {
        lease = await this.#insist(connection, once);
        return lease;
      } catch (error) {
        if (!served || !connection.ended.aborted || this.#givenUp) throw error;
        if (error instanceof TimeLimitError) pool.replaceIdle();
      } finally {
        if (!lease) pool.giveBack(connection);
      }
    }
  }

  /** First asks without waiting, which shows that the server is there; then waits in line for the row, a while at a time. */
  async #insist(connection: RowConnection, once: boolean): Promise<RowLease | null> {
    const { deadline } = this.request;
    for (;;) {
      const lease = await this.#attempt(connection, this.refused ? Math.min(WAIT_MS, deadline.remainingMs) : 0);
      if (lease) return lease;
      this.refused = true;
      this.#failingSince = undefined;
      if (once || deadline.passed || this.#givenUp) return null;
    }
  }

  /** Whether trying again would not mend it in time. Whoever tries once has time for what a busy database does only. */
  #isHopeless(error: unknown, once: boolean): boolean {
    const { deadline } = this.request;
    const { locks, statementTimeoutMs } = this.target;
    if (error instanceof LockError || this.#givenUp || (!once && deadline.passed)) return true;
    if (once && !(error instanceof DatabaseError && locks.isBusy(error))) return true;
    this.#failingSince ??= deadline.clock.now();
    return deadline.clock.now() - this.#failingSince >= (once ? statementTimeoutMs : this.patienceMs);
  }

  /** `null` when somebody else has the row. */
  async #attempt(connection: RowConnection, waitMs: number): Promise<RowLease | null> {
    const { key, table, locks } = this.target;
    const ttlMs = locks.ttlMs(this.request.ttlMs);
    const runner = await connection.lend();
    const query: Query = async (sql, parameters) => rowsOf(await this.#inTime(runner.query(sql, [...parameters])));
    try {
      await this.#inTime(runner.startTransaction('READ COMMITTED'));
      await locks.limit(query, { ttlMs, waitMs });
      const select = runner.query(locks.lock(table, waitMs > 0 ? 'wait' : 'nowait'), [locks.row.columnOf(key)]);
      const [row] = rowsOf(await this.#inTime(select, waitMs > 0 ? WAIT_MS : 0));
      if (row && waitMs > 0) await locks.settle(query);
      if (row) return await this.#lease(connection, runner, query);
      await locks.create(query, table, key);
      // Committed before anybody locks it, as those who wait for a row must see it.
      await this.#inTime(runner.commitTransaction());
    } catch (error) {
      await this.#end(connection, runner, error);
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
    const { owner, metadata, deadline } = this.request;
    const ttlMs = locks.ttlMs(this.request.ttlMs);
    const sentAt = deadline.clock.now();
    const fencingToken = await locks.take(query, table, { key, owner }, metadata);
    if (fencingToken === undefined) throw new DatabaseError('the row of the key vanished', undefined);
    const times = { ttlMs, sentAt, statementTimeoutMs };
    if (deadline.clock.now() >= trustedUntil(sentAt, ttlMs)) {
      throw new DatabaseError('the answer came after the lease had ended', undefined);
    }
    const lease = new RowLease({ key, table, locks, connection, runner, fencingToken, ...times });
    lease.onOver(() => pool.giveBack(connection));
    return lease;
  }

  async #end(connection: RowConnection, runner: QueryRunner, error: unknown): Promise<void> {
    try {
      if (error instanceof TimeLimitError) connection.cut();
      else if (runner.isTransactionActive) await this.#inTime(runner.rollbackTransaction());
    } catch {
      connection.cut();
    }
    await runner.release().catch(() => undefined);
  }

  /** One statement, which may be a wait for the row. */
  #inTime<T>(statement: Promise<T>, waitMs = 0): Promise<T> {
    const { clock } = this.request.deadline;
    this.answerDueAt = clock.now() + waitMs + SILENCE_MS;
    const deadline = Deadline.after(waitMs + this.target.statementTimeoutMs, clock);
    return within(deadline, 'the database gave no answer', statement);
  }
}
