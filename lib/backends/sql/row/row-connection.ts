import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { Deadline } from '../../../core/index.js';
import { isReadOnlyError, toErrorWithoutStatement } from '../connections/database-error.js';
import type { ConnectionSettings } from '../connections/own-connection.js';
import type { Query } from '../connections/query.js';
import { Sockets } from '../connections/sockets.js';
import type { DriverTransaction, TransactionConnection } from '../connections/sql-database.js';
import { settleByDeadline } from '../connections/timeout.js';
import { runUnlogged } from '../connections/unlogged.js';
import { createTransactionOverError } from '../connections/holder-client.js';

const CLOSE_TIMEOUT_MS = 200;

/** The connection whose transaction the running function ends. */
const endingConnection = new AsyncLocalStorage<RowConnection>();

export type RowConnectionSettings = ConnectionSettings & {
  readonly createTransactionConnection: (sockets: Sockets) => TransactionConnection;
};

export class RowConnection {
  readonly #connection: TransactionConnection;
  readonly #endController = new AbortController();
  readonly endSignal: AbortSignal = this.#endController.signal;
  client: unknown;
  #transaction: DriverTransaction | undefined;
  #lastAnswer: Promise<unknown> = Promise.resolve();
  #isDestroyed = false;
  /** Whether a transaction was begun before. The connection may have ended unnoticed since then. */
  wasUsedBefore = false;
  /**
   * Check that the transaction is still open, for which the holder's next statements wait. If the check rejects, these
   * statements are not sent: outside of a transaction, the server would commit each of them at once.
   */
  statementGate: Promise<void> | undefined;
  onStatementFailure: ((error: unknown) => void) | undefined;
  #isTransactionEnding = false;
  readonly #sockets = new Sockets();

  private constructor({ createTransactionConnection }: RowConnectionSettings) {
    this.#connection = createTransactionConnection(this.#sockets);
  }

  /** Opens a connection, and leaves none open when this fails, or takes longer than `connectTimeoutMs`. */
  static async open(settings: RowConnectionSettings): Promise<RowConnection> {
    const connection = new RowConnection(settings);
    try {
      const { connectTimeoutMs } = settings;
      const deadline = Deadline.after(connectTimeoutMs);
      const runInTime = (failureText: string, step: () => Promise<void>): Promise<void> =>
        settleByDeadline(deadline, failureText, runUnlogged(step), `connectTimeoutMs: ${connectTimeoutMs}`);
      await runInTime('the database accepted no connection', () => connection.#connect(connectTimeoutMs));
      await runInTime('the database did not show the table of the locks, which a change of it may keep closed', () =>
        settings.onOpen(connection.#connection.query),
      );
      return connection;
    } catch (error) {
      const cause = toErrorWithoutStatement(error);
      connection.destroy(cause);
      throw cause;
    }
  }

  async createTransaction(): Promise<DriverTransaction> {
    this.wasUsedBefore = true;
    this.onStatementFailure = undefined;
    this.statementGate = undefined;
    this.#isTransactionEnding = false;
    const transaction = await this.#connection.createTransaction((statement) => this.#runHolderStatement(statement));
    const { client } = transaction;
    // An 'error' event without a listener ends the process. `Sockets` reports a lost connection.
    if (client !== this.client && client instanceof EventEmitter) client.on('error', () => undefined);
    this.client = client;
    this.#transaction = transaction;
    return transaction;
  }

  /**
   * Runs the statements that end the transaction, after those that the holder has already called. Later statements of the
   * holder are refused: behind the end, the server would commit each of them at once.
   */
  endTransaction<T>(sendEnd: () => Promise<T>): Promise<T> {
    this.#isTransactionEnding = true;
    return endingConnection.run(this, sendEnd);
  }

  /** Sends the statement after the answers to all earlier ones, also the holder's. The time-out begins after these. */
  async sendInOrder(timeoutMs: number, ...statement: Parameters<Query>): ReturnType<Query> {
    const transaction = this.#transaction;
    const previousAnswer = this.#lastAnswer;
    const answer = runUnlogged(() => this.#runInOrder(async () => transaction?.sendDirectly(...statement) ?? []));
    await previousAnswer;
    return settleByDeadline(Deadline.after(timeoutMs), 'the database gave no answer', answer);
  }

  async close(): Promise<void> {
    await settleByDeadline(Deadline.after(CLOSE_TIMEOUT_MS), 'no goodbye', this.#connection.end()).catch(
      () => undefined,
    );
    this.#sockets.destroy();
    this.#endController.abort();
  }

  /** @param cause the failure after which the connection cannot be used, if any */
  destroy(cause?: unknown): void {
    if (isReadOnlyError(cause)) this.#connection.tryAddressLast?.();
    this.#sockets.destroy();
    this.#endController.abort();
    if (this.#isDestroyed) return;
    this.#isDestroyed = true;
    this.#connection.end().catch(() => undefined);
  }

  async #runHolderStatement<T>(statement: () => Promise<T>): Promise<T> {
    for (;;) {
      const passedGate = this.statementGate;
      if (passedGate) await passedGate;
      if (this.#isTransactionEnding && endingConnection.getStore() !== this) throw createTransactionOverError();
      const answer = await this.#runInOrder(async () => {
        // While this statement waited, an earlier one may have failed and set a new gate.
        if (this.statementGate !== passedGate) return undefined;
        return { value: await this.#reportFailure(statement) };
      });
      if (answer) return answer.value;
    }
  }

  async #reportFailure<T>(statement: () => Promise<T>): Promise<T> {
    try {
      return await statement();
    } catch (error) {
      this.onStatementFailure?.(error);
      throw error;
    }
  }

  /** Runs the statement after the answer to the previous one. Newer drivers do not queue statements themselves. */
  #runInOrder<T>(statement: () => Promise<T>): Promise<T> {
    const answer = this.#lastAnswer.then(statement);
    this.#lastAnswer = answer.catch(() => undefined);
    return answer;
  }

  async #connect(connectTimeoutMs: number): Promise<void> {
    await this.#connection.connect(connectTimeoutMs);
    this.#sockets.setEndListener(() => this.#endController.abort());
    this.#sockets.assertSocketIsWatched('row');
  }
}
