import { EventEmitter } from 'node:events';
import { Deadline } from '../../../core/index.js';
import { cleanError } from '../connections/database-error.js';
import type { ConnectionSettings } from '../connections/own-connection.js';
import type { Query } from '../connections/query.js';
import { Sockets } from '../connections/sockets.js';
import type { DriverTransaction, TransactionConnection } from '../connections/sql-database.js';
import { within } from '../connections/timeout.js';
import { runUnlogged } from '../connections/unlogged.js';

/** The longest time for an orderly end. */
const CLOSE_MS = 200;

export type RowConnectionSettings = ConnectionSettings & {
  readonly openTransactions: (sockets: Sockets) => TransactionConnection;
};

/** One connection that lends itself to one transaction at a time. */
export class RowConnection {
  readonly #connection: TransactionConnection;
  readonly #end = new AbortController();
  /** Aborts when the connection ends, and its transaction with it. */
  readonly ended: AbortSignal = this.#end.signal;
  /** The driver's own connection, once it was lent. */
  client: unknown;
  /** The one transaction that may be in use. */
  #transaction: DriverTransaction | undefined;
  #lastAnswer: Promise<unknown> = Promise.resolve();
  /** Whether somebody has had it before: it may have ended meanwhile without our noticing. */
  served = false;
  /**
   * Settles before each further statement of the transaction. Its rejection refuses the statement, which would be committed
   * by itself where the server has ended the transaction.
   */
  gate: Promise<void> | undefined;
  /** Hears of each statement of the transaction that failed. */
  onFailure: ((error: unknown) => void) | undefined;
  readonly #sockets = new Sockets(() => this.#end.abort());

  private constructor({ openTransactions }: RowConnectionSettings) {
    this.#connection = openTransactions(this.#sockets);
  }

  /** Within `connectTimeoutMs`, or nothing stays open. */
  static async open(settings: RowConnectionSettings): Promise<RowConnection> {
    const connection = new RowConnection(settings);
    try {
      const { connectTimeoutMs } = settings;
      const deadline = Deadline.after(connectTimeoutMs);
      const inTime = (what: string, step: () => Promise<void>): Promise<void> =>
        within(deadline, what, runUnlogged(step), `connectTimeoutMs: ${connectTimeoutMs}`);
      await inTime('the database accepted no connection', () => connection.#connect());
      await inTime('the database did not show the table of the locks, which a change of it may keep closed', () =>
        settings.onOpen(connection.#connection.query),
      );
      return connection;
    } catch (error) {
      connection.cut();
      throw cleanError(error);
    }
  }

  /** The one transaction that may be in use. Its statements go out one after the other. */
  async lend(): Promise<DriverTransaction> {
    this.served = true;
    this.onFailure = undefined;
    this.gate = undefined;
    const transaction = await this.#connection.lend((statement) => this.#watched(statement));
    const { client } = transaction;
    // An 'error' without a listener ends the process; what it means is told by the socket's end.
    if (client !== this.client && client instanceof EventEmitter) client.on('error', () => undefined);
    this.client = client;
    this.#transaction = transaction;
    return transaction;
  }

  /** A statement of the locks'. Its time begins when those before it are answered: a holder's own may take longer. */
  async ask(limitMs: number, ...statement: Parameters<Query>): ReturnType<Query> {
    const [transaction, turn] = [this.#transaction, this.#lastAnswer];
    const answer = runUnlogged(() => this.#inTurn(async () => transaction?.send(...statement) ?? []));
    await turn;
    return within(Deadline.after(limitMs), 'the database gave no answer', answer);
  }

  /** Ends in good order, or cuts the connection when the server does not answer. */
  async close(): Promise<void> {
    await within(Deadline.after(CLOSE_MS), 'no goodbye', this.#connection.end()).catch(() => undefined);
    this.#sockets.destroy();
    this.#end.abort();
  }

  cut(): void {
    this.#sockets.destroy();
    this.#end.abort();
    this.#connection.end().catch(() => undefined);
  }

  async #watched<T>(statement: () => Promise<T>): Promise<T> {
    try {
      if (this.gate) await this.gate;
      return await this.#inTurn(statement);
    } catch (error) {
      this.onFailure?.(error);
      throw error;
    }
  }

  /** Drivers no longer queue statements. */
  #inTurn<T>(statement: () => Promise<T>): Promise<T> {
    const answer = this.#lastAnswer.then(statement);
    this.#lastAnswer = answer.catch(() => undefined);
    return answer;
  }

  async #connect(): Promise<void> {
    await this.#connection.connect();
    this.#sockets.assertUsed('row');
  }
}
