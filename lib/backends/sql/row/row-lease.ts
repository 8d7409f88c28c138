import { Deadline, type GrantedLease, type HolderMetadata, JoinedSignal, LockLostError } from '../../../core/index.js';
import {
  toErrorWithoutStatement,
  DatabaseError,
  hasErrorCode,
  isConnectionGone,
  createReadOnlyServerError,
} from '../connections/database-error.js';
import { isTrue, type Query } from '../connections/query.js';
import { runUnlogged } from '../connections/unlogged.js';
import { TimeoutError, settleByDeadline } from '../connections/timeout.js';
import type { KeyAndToken } from '../dialect/row-locks.js';
import type { RowTransaction } from './row-transaction.js';

/**
 * Lease of a transaction that has locked the row. `complete` commits the holder's writes. `release` without `complete`
 * undoes these writes, and commits only the fencing token, so that no later lease gets the same token.
 */
export class RowLease implements GrantedLease {
  readonly acquired = true;
  readonly ttlMs: number;
  readonly #revokeController = new AbortController();
  readonly #joinedRevocation: JoinedSignal;
  #isCompleting = false;
  #ending: Promise<void> | undefined;
  #nextHeartbeat: Promise<boolean> | undefined;

  private constructor(
    private readonly transaction: RowTransaction,
    readonly fencingToken: bigint,
  ) {
    const { connection, target } = transaction;
    this.ttlMs = target.ttlMs;
    this.#joinedRevocation = new JoinedSignal([connection.endSignal, this.#revokeController.signal]);
    connection.onStatementFailure = (error) => {
      const cause = toErrorWithoutStatement(error);
      if (hasErrorCode(cause, target.locks.rolledBackCodePattern)) this.#delayStatementsUntilChecked(async () => false);
      else if (hasErrorCode(cause, target.locks.mayRollBackCodePattern))
        this.#delayStatementsUntilChecked(() => this.#isRowStillLocked());
    };
  }

  static async grant(transaction: RowTransaction, owner: string, metadata: HolderMetadata): Promise<RowLease> {
    const { key, table, locks } = transaction.target;
    try {
      const fencingToken = await locks.recordHolder(transaction.query, table, { key, owner }, metadata);
      if (fencingToken === undefined) throw new DatabaseError('the row of the key vanished', undefined);
      return new RowLease(transaction, fencingToken);
    } catch (error) {
      await transaction.end(error);
      throw toErrorWithoutStatement(error);
    }
  }

  get revoked(): AbortSignal {
    return this.#joinedRevocation.signal;
  }

  get attachment(): object {
    return this.transaction.driverTransaction.attachment;
  }

  /** Checks the row after the holder's earlier statements. The lock is lost if one of these outlasts the TTL. */
  async renew(): Promise<boolean> {
    if (this.#isCompleting) return true;
    if (this.#ending || this.revoked.aborted) return false;
    this.#nextHeartbeat ??= Promise.resolve().then(() => {
      this.#nextHeartbeat = undefined;
      return this.#isRowStillLocked();
    });
    return this.#nextHeartbeat;
  }

  /**
   * Commits the transaction. After a failure, nothing was written. Only when the connection broke during the commit, or
   * was silent for a whole TTL, the server may have committed.
   * @throws LockLostError when the transaction no longer has the row, as after a deadlock, or after DDL on MySQL, which
   *   commits; the error of the commit
   */
  async complete(): Promise<void> {
    if (this.#ending) throw new LockLostError(this.transaction.target.key, 'revoked');
    this.#isCompleting = true;
    const commit = this.#commitInTime().finally(() => (this.#isCompleting = false));
    this.#ending = commit.then(
      () => this.#releaseConnection(),
      () => this.#commitWithoutWrites(),
    );
    // Without a later `release`, nothing else would handle the rejection.
    this.#ending.catch(() => undefined);
    await commit;
  }

  async release(): Promise<boolean> {
    this.#ending ??= this.#commitWithoutWrites();
    await this.#ending;
    return !this.revoked.aborted;
  }

  get #queryWithoutTimeout(): Query {
    const { query } = this.transaction.driverTransaction;
    return (...statement) => runUnlogged(() => query(...statement));
  }

  get #keyAndToken(): KeyAndToken {
    return { key: this.transaction.target.key, fencingToken: this.fencingToken };
  }

  /** Waits for one TTL at most: the lease is not trusted for longer. */
  async #isRowStillLocked(): Promise<boolean> {
    const { query, target } = this.transaction;
    try {
      return await settleByDeadline(
        Deadline.after(this.ttlMs),
        'the database gave no answer',
        this.#hasOwnToken(query),
      );
    } catch (error) {
      const cause = toErrorWithoutStatement(error);
      if (hasErrorCode(cause, target.locks.abortedCodePattern)) return true;
      if (!isConnectionGone(cause)) throw cause;
      // The driver may report the end of the connection before the socket does.
      this.transaction.connection.destroy();
      return false;
    }
  }

  #delayStatementsUntilChecked(isRowStillLocked: () => Promise<boolean>): void {
    const { connection, target } = this.transaction;
    const assertHasRow = async (): Promise<void> => {
      // Without an answer, the statement may run: the next renewal asks again.
      if (await isRowStillLocked().catch(() => true)) return;
      this.#revokeController.abort();
      throw new LockLostError(target.key, 'revoked');
    };
    connection.statementGate = assertHasRow();
    // Without a next statement, nothing else would handle the rejection.
    connection.statementGate.catch(() => undefined);
  }

  /** Resolves to whether the row has this lease's token. After a rollback, the row has another one. */
  async #hasOwnToken(query: Query): Promise<boolean> {
    const { locks, table, key } = this.transaction.target;
    const [row] = await query(locks.selectTokenSql(table), [locks.keyRow.toColumnValue(key)]);
    if (isTrue(row?.['is_read_only'])) this.#endBySwitchOver();
    return row?.['token'] === String(this.fencingToken) && !this.revoked.aborted;
  }

  /** Ends the lease, since the server takes no writes: other processes may already use the new primary server. */
  #endBySwitchOver(): void {
    const { connection, target } = this.transaction;
    connection.destroy();
    target.pool.closeIdleAfterSwitchOver(createReadOnlyServerError());
  }

  async #commitInTime(): Promise<void> {
    try {
      const commit = this.transaction.connection.endTransaction(() => this.#commit());
      await settleByDeadline(Deadline.after(this.ttlMs), 'the database did not confirm the commit', commit);
    } catch (error) {
      // While the connection is open, a server that comes back could still carry out the commit.
      if (error instanceof TimeoutError) this.#destroyUnanswered();
      throw error;
    }
  }

  async #commit(): Promise<void> {
    const { target, driverTransaction } = this.transaction;
    // PostgreSQL also confirms the commit of an aborted transaction, which it rolls back. The row is checked first.
    const hasRow = await (target.locks.prepareCommit?.(this.#queryWithoutTimeout, target.table, this.#keyAndToken) ??
      this.#hasOwnToken(this.#queryWithoutTimeout));
    if (!hasRow || this.revoked.aborted) throw new LockLostError(target.key, 'revoked');
    await driverTransaction.commit();
    if (driverTransaction.isActive)
      throw new DatabaseError('a transaction that the holder began within that of the lock is still open', undefined);
  }

  /** @throws the database's error, or a TimeoutError: the row is free once the server notices the connection's end */
  async #commitWithoutWrites(): Promise<void> {
    const { connection, target } = this.transaction;
    try {
      const rollback = connection.endTransaction(() =>
        target.locks.commitWithoutWrites(this.#queryWithoutTimeout, target.table, this.#keyAndToken),
      );
      await settleByDeadline(Deadline.after(target.requestTimeoutMs), 'the database did not roll back', rollback);
    } catch (error) {
      const wasLost = this.revoked.aborted;
      // The server rolls the transaction back when the connection ends.
      if (error instanceof TimeoutError) this.#destroyUnanswered();
      else connection.destroy();
      if (!wasLost) throw toErrorWithoutStatement(error);
    } finally {
      await this.#releaseConnection();
    }
  }

  /** Destroys the connection while a statement has no answer. */
  #destroyUnanswered(): void {
    this.transaction.rememberSession();
    this.transaction.connection.destroy();
  }

  async #releaseConnection(): Promise<void> {
    const { driverTransaction, connection, target } = this.transaction;
    this.#joinedRevocation.end();
    await driverTransaction.release().catch(() => undefined);
    target.pool.release(connection);
  }
}
