import { Deadline, type GrantedLease, type HolderMetadata, JoinedSignal, LockLostError } from '../../../core/index.js';
import {
  cleanError,
  DatabaseError,
  isAnswer,
  isConnectionGone,
  switchOverError,
} from '../connections/database-error.js';
import { isTrue, type Query } from '../connections/query.js';
import { runUnlogged } from '../connections/unlogged.js';
import { TimeoutError, within } from '../connections/timeout.js';
import type { TokenOfRow } from '../dialect/row-locks.js';
import type { RowTransaction } from './row-transaction.js';

/**
 * A transaction that has the key's row. `complete` commits what was written through it; `release` without it undoes
 * that, and commits nothing but the fencing token, so that it is never given twice.
 */
export class RowLease implements GrantedLease {
  readonly acquired = true;
  readonly ttlMs: number;
  readonly #revoke = new AbortController();
  readonly #revoked: JoinedSignal;
  #completing = false;
  #ending: Promise<void> | undefined;
  #nextHeartbeat: Promise<boolean> | undefined;

  private constructor(
    private readonly transaction: RowTransaction,
    readonly fencingToken: bigint,
  ) {
    const { connection, target } = transaction;
    this.ttlMs = target.ttlMs;
    this.#revoked = new JoinedSignal([connection.ended, this.#revoke.signal]);
    connection.onFailure = (error) => {
      const cause = cleanError(error);
      if (isAnswer(cause, target.locks.rolledBack)) this.#stop(async () => false);
      else if (isAnswer(cause, target.locks.mayRollBack)) this.#stop(() => this.#isOurs());
    };
  }

  /** With the row's next token, counting from this call. Without one the row is free again. */
  static async take(transaction: RowTransaction, owner: string, metadata: HolderMetadata): Promise<RowLease> {
    const { key, table, locks } = transaction.target;
    try {
      const fencingToken = await locks.take(transaction.query, table, { key, owner }, metadata);
      if (fencingToken === undefined) throw new DatabaseError('the row of the key vanished', undefined);
      return new RowLease(transaction, fencingToken);
    } catch (error) {
      await transaction.end(error);
      throw cleanError(error);
    }
  }

  get revoked(): AbortSignal {
    return this.#revoked.signal;
  }

  /** The transaction, for the holder's writes. It refuses to work once the lease is over. */
  get attachment(): object {
    return this.transaction.driver.attachment;
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
   * Commits. A failure means that nothing was written. Only a connection that breaks in the middle of the commit, or is
   * silent for a whole TTL, may have carried it out.
   * @throws LockLostError when the row is no longer ours, after a deadlock or after a statement that commits, such as
   *   DDL on MySQL. Else what the database says to the commit
   */
  async complete(): Promise<void> {
    if (this.#ending) throw new LockLostError(this.transaction.target.key, 'revoked');
    this.#completing = true;
    const committed = this.#commitInTime().finally(() => (this.#completing = false));
    this.#ending = committed.then(
      () => this.#releaseConnection(),
      () => this.#undo(),
    );
    // A lease that could not be completed need not be released.
    this.#ending.catch(() => undefined);
    await committed;
  }

  /** False: it was lost before. */
  async release(): Promise<boolean> {
    this.#ending ??= this.#undo();
    await this.#ending;
    return !this.revoked.aborted;
  }

  /** Behind the holder's own statements. */
  get #query(): Query {
    const { query } = this.transaction.driver;
    return (...statement) => runUnlogged(() => query(...statement));
  }

  get #token(): TokenOfRow {
    return { key: this.transaction.target.key, fencingToken: this.fencingToken };
  }

  /** After the TTL nobody trusts the lease without an answer, and so nobody waits for one. */
  async #isOurs(): Promise<boolean> {
    const { query, target } = this.transaction;
    try {
      return await within(Deadline.after(this.ttlMs), 'the database gave no answer', this.#hasToken(query));
    } catch (error) {
      const cause = cleanError(error);
      if (isAnswer(cause, target.locks.aborted)) return true;
      if (!isConnectionGone(cause)) throw cause;
      // The driver may know of it before the socket does, and the transaction is over with its connection.
      this.transaction.connection.cut();
      return false;
    }
  }

  /** Lets the holder's next statement wait until it is known whether the row is ours, and refuses it if not. */
  #stop(isOurs: () => Promise<boolean>): void {
    const { connection, target } = this.transaction;
    const refuse = async (): Promise<void> => {
      // The next renewal finds out what this question cannot.
      if (await isOurs().catch(() => true)) return;
      this.#revoke.abort();
      throw new LockLostError(target.key, 'revoked');
    };
    connection.gate = refuse();
    // There may be no next statement.
    connection.gate.catch(() => undefined);
  }

  /** Our transaction sees the token that it wrote, and the former one or the next one's if it is no longer there. */
  async #hasToken(query: Query): Promise<boolean> {
    const { locks, table, key } = this.transaction.target;
    const [row] = await query(locks.token(table), [locks.row.columnOf(key)]);
    if (isTrue(row?.['is_read_only'])) this.#endBySwitchOver();
    return row?.['token'] === String(this.fencingToken) && !this.revoked.aborted;
  }

  /** The other processes may have turned to another server already. */
  #endBySwitchOver(): void {
    const { connection, target } = this.transaction;
    connection.cut();
    target.pool.endIdle(switchOverError());
  }

  async #commitInTime(): Promise<void> {
    try {
      await within(Deadline.after(this.ttlMs), 'the database did not confirm the commit', this.#commit());
    } catch (error) {
      // Or it would go on where it was when the server comes back.
      if (error instanceof TimeoutError) this.#cutUnanswered();
      throw error;
    }
  }

  async #commit(): Promise<void> {
    const { target, driver } = this.transaction;
    // PostgreSQL confirms the commit of a transaction that a failed statement has aborted, and rolls it back.
    const isOurs = await (target.locks.leave?.(this.#query, target.table, this.#token) ?? this.#hasToken(this.#query));
    if (!isOurs || this.revoked.aborted) throw new LockLostError(target.key, 'revoked');
    await driver.commit();
  }

  /** @throws what the database said, or that it said nothing: the row is free once it notices the connection's end */
  async #undo(): Promise<void> {
    const { connection, target } = this.transaction;
    try {
      const undone = target.locks.undo(this.#query, target.table, this.#token);
      await within(Deadline.after(target.requestTimeoutMs), 'the database did not roll back', undone);
    } catch (error) {
      const wasLost = this.revoked.aborted;
      // The end of its connection rolls the transaction back, whatever state it is in.
      if (error instanceof TimeoutError) this.#cutUnanswered();
      else connection.cut();
      if (!wasLost) throw cleanError(error);
    } finally {
      await this.#releaseConnection();
    }
  }

  #cutUnanswered(): void {
    this.transaction.rememberSession();
    this.transaction.connection.cut();
  }

  async #releaseConnection(): Promise<void> {
    const { driver, connection, target } = this.transaction;
    this.#revoked.end();
    await driver.release().catch(() => undefined);
    target.pool.release(connection);
  }
}
