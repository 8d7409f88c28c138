import type { EntityManager, QueryRunner } from 'typeorm';
import { Deadline, type Lease, LockLostError } from '../../../core/index.js';
import { cleanError, DatabaseError } from '../clean-error.js';
import { rowsOf } from '../rows-of.js';
import type { Query } from '../sql-dialect.js';
import { TimeLimitError, within } from '../time-limit.js';
import type { RowConnection } from './row-connection.js';
import type { RowLocks } from './row-locks.js';

export interface RowGrant {
  readonly key: string;
  readonly table: string;
  readonly locks: RowLocks;
  readonly connection: RowConnection;
  readonly runner: QueryRunner;
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  readonly sentAt: number;
  readonly statementTimeoutMs: number;
}

/**
 * A transaction that has the key's row. `complete` commits what was written through it; `release` without it undoes that, and
 * commits nothing but the fencing token, so that it is never given twice.
 */
export class RowLease implements Lease {
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  readonly sentAt: number;
  readonly revoked: AbortSignal;
  readonly #revoke = new AbortController();
  readonly #onOver: (() => void)[] = [];
  #completing = false;
  #ending: Promise<void> | undefined;
  #nextHeartbeat: Promise<boolean> | undefined;

  constructor(private readonly grant: RowGrant) {
    ({ fencingToken: this.fencingToken, ttlMs: this.ttlMs, sentAt: this.sentAt } = grant);
    const { runner, connection } = grant;
    this.revoked = AbortSignal.any([connection.ended, this.#revoke.signal]);
    const inOrder = runner.query.bind(runner);
    const query = async (...args: Parameters<typeof inOrder>): Promise<unknown> => {
      try {
        return await inOrder(...args);
      } catch (error) {
        const cause = cleanError(error);
        if (cause instanceof DatabaseError && grant.locks.isRolledBack(cause)) this.#revoke.abort();
        throw error;
      }
    };
    Object.defineProperty(runner, 'query', { value: query });
  }

  /** Calls `listener` once, when the connection is free for the next one or has ended. */
  onOver(listener: () => void): void {
    this.#onOver.push(listener);
  }

  /** The transaction, for the holder's writes. It refuses to work once the lease is over. */
  get attachment(): EntityManager {
    return this.grant.runner.manager;
  }

  /** Behind the holder's own statements: one that runs for longer than the TTL costs the lock. */
  async renew(): Promise<boolean> {
    if (this.#completing) return true;
    if (this.#ending || this.revoked.aborted) return false;
    this.#nextHeartbeat ??= Promise.resolve().then(() => {
      this.#nextHeartbeat = undefined;
      return this.#isOurs();
    });
    return this.#nextHeartbeat;
  }

  /**
   * Commits. @throws LockLostError when the row is no longer ours: by a deadlock that rolled everything back, or by a statement
   * that committed too early, such as DDL on MySQL; what the database says to the commit. Nothing was written then, unless the
   * connection broke in the middle of the commit, or was silent for a whole TTL: that one may have been carried out.
   */
  async complete(): Promise<void> {
    if (this.#ending) throw new LockLostError(this.grant.key, 'revoked');
    this.#completing = true;
    const committed = this.#commitInTime().finally(() => (this.#completing = false));
    this.#ending = committed.then(
      () => this.#giveBack(),
      () => this.#undo(),
    );
    // Nobody has to release what could not be completed.
    this.#ending.catch(() => undefined);
    await committed;
  }

  async release(): Promise<void> {
    this.#ending ??= this.#undo();
    await this.#ending;
  }

  readonly #query: Query = async (sql, parameters) => rowsOf(await this.grant.runner.query(sql, [...parameters]));

  async #isOurs(): Promise<boolean> {
    try {
      return await this.#hasToken();
    } catch (error) {
      const cause = cleanError(error);
      if (cause instanceof DatabaseError && this.grant.locks.isAborted(cause)) return true;
      throw cause;
    }
  }

  /** Our transaction sees the token that it wrote, and the former one or the next one's if it is no longer there. */
  async #hasToken(): Promise<boolean> {
    const { locks, table, key, fencingToken } = this.grant;
    const [row] = await this.#query(locks.token(table), [locks.row.columnOf(key)]);
    return row?.['token'] === String(fencingToken) && !this.revoked.aborted;
  }

  async #commitInTime(): Promise<void> {
    try {
      await within(Deadline.after(this.ttlMs), 'the database did not confirm the commit', this.#commit());
    } catch (error) {
      // Or it would go on where it was when the server comes back.
      if (error instanceof TimeLimitError) this.grant.connection.cut();
      throw error;
    }
  }

  async #commit(): Promise<void> {
    const { locks, table } = this.grant;
    // PostgreSQL answers the commit of a transaction that a failed statement has aborted with success, and rolls it back.
    const isOurs = await (locks.leave?.(this.#query, table, this.grant) ?? this.#hasToken());
    if (!isOurs || this.revoked.aborted) throw new LockLostError(this.grant.key, 'revoked');
    await this.grant.runner.commitTransaction();
  }

  /** @throws what the database said, or that it said nothing: the row is free once it notices the end of the connection */
  async #undo(): Promise<void> {
    const { connection, statementTimeoutMs, locks, table } = this.grant;
    try {
      const undone = locks.undo(this.#query, table, this.grant);
      await within(Deadline.after(statementTimeoutMs), 'the database did not roll back', undone);
    } catch (error) {
      const wasLost = this.revoked.aborted;
      // The end of its connection rolls the transaction back, whatever state it is in.
      connection.cut();
      if (!wasLost) throw cleanError(error);
    } finally {
      await this.#giveBack();
    }
  }

  async #giveBack(): Promise<void> {
    await this.grant.runner.release().catch(() => undefined);
    for (const listener of this.#onOver) listener();
  }
}
