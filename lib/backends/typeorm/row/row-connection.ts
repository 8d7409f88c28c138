import { EventEmitter } from 'node:events';
import type { DataSource, QueryRunner } from 'typeorm';
import { Deadline } from '../../../core/index.js';
import { cleanError } from '../connections/database-error.js';
import { makeDataSource } from '../connections/data-source.js';
import { type Query, queryOn, readRows } from '../connections/query.js';
import type { ConnectionSettings } from '../connections/own-connection.js';
import { loggerOfOthers, runUnlogged } from '../connections/silent-logger.js';
import { Sockets } from '../connections/sockets.js';
import { within } from '../connections/timeout.js';

/** The longest time for an orderly end. */
const CLOSE_MS = 200;

/** One connection with the application's entities, which lends itself to one transaction at a time. */
export class RowConnection {
  readonly #dataSource: DataSource;
  readonly #end = new AbortController();
  /** Aborts when the connection ends, and its transaction with it. */
  readonly ended: AbortSignal = this.#end.signal;
  /** The driver's own connection, once it was lent. */
  client: unknown;
  /** Sends by the one runner that may be in use. */
  #send: QueryRunner['query'] | undefined;
  #lastAnswer: Promise<unknown> = Promise.resolve();
  /** Whether somebody has had it before: it may have ended meanwhile without our noticing. */
  served = false;
  readonly #sockets = new Sockets(() => this.#end.abort());

  private constructor(private readonly settings: ConnectionSettings) {
    this.#dataSource = makeDataSource(settings.dialect.connection(settings.options, this.#sockets));
    this.#dataSource.logger = loggerOfOthers(this.#dataSource.logger);
  }

  /** Within `connectTimeoutMs`, or nothing stays open. */
  static async open(settings: ConnectionSettings): Promise<RowConnection> {
    const connection = new RowConnection(settings);
    try {
      const { connectTimeoutMs } = settings;
      const deadline = Deadline.after(connectTimeoutMs);
      const inTime = (what: string, step: () => Promise<void>): Promise<void> =>
        within(deadline, what, runUnlogged(step), `connectTimeoutMs: ${connectTimeoutMs}`);
      await inTime('the database accepted no connection', () => connection.#connect());
      await inTime('the database did not show the table of the locks, which a change of it may keep closed', () =>
        connection.#prepare(),
      );
      return connection;
    } catch (error) {
      connection.cut();
      throw cleanError(error);
    }
  }

  /** The one runner that may be in use. Its statements go out one after the other. */
  async lend(): Promise<QueryRunner> {
    this.served = true;
    const runner = this.#dataSource.createQueryRunner('master');
    const client: unknown = await runner.connect();
    // An 'error' without a listener ends the process; what it means is told by the socket's end.
    if (client !== this.client && client instanceof EventEmitter) client.on('error', () => undefined);
    this.client = client;
    const direct = runner.query.bind(runner);
    this.#send = direct;
    const query = (...args: Parameters<typeof direct>): Promise<unknown> => this.#inTurn(() => direct(...args));
    return Object.defineProperty(runner, 'query', { value: query, configurable: true });
  }

  /** A statement of the locks'. Its time begins when those before it are answered: a holder's own may take longer. */
  async ask(limitMs: number, ...[sql, parameters]: Parameters<Query>): ReturnType<Query> {
    const [send, turn] = [this.#send, this.#lastAnswer];
    const answer = runUnlogged(() => this.#inTurn(async () => send?.(sql, [...parameters])));
    await turn;
    return readRows(await within(Deadline.after(limitMs), 'the database gave no answer', answer));
  }

  /** Ends in good order, or cuts the connection when the server does not answer. */
  async close(): Promise<void> {
    const goodbye = this.#dataSource.destroy();
    await within(Deadline.after(CLOSE_MS), 'no goodbye', goodbye).catch(() => undefined);
    this.#sockets.destroy();
    this.#end.abort();
  }

  cut(): void {
    this.#sockets.destroy();
    this.#end.abort();
    if (this.#dataSource.isInitialized) this.#dataSource.destroy().catch(() => undefined);
  }

  /** Drivers no longer queue statements. */
  #inTurn<T>(statement: () => Promise<T>): Promise<T> {
    const answer = this.#lastAnswer.then(statement);
    this.#lastAnswer = answer.catch(() => undefined);
    return answer;
  }

  async #connect(): Promise<void> {
    await this.#dataSource.initialize();
    this.#sockets.assertUsed('row');
    if (this.ended.aborted) await this.#dataSource.destroy();
  }

  async #prepare(): Promise<void> {
    await this.settings.onOpen(queryOn(this.#dataSource));
    if (this.ended.aborted) await this.#dataSource.destroy();
  }
}
