import { EventEmitter } from 'node:events';
import type { DataSource, DataSourceOptions, QueryRunner } from 'typeorm';
import { Deadline } from '../../../core/index.js';
import { cleanError } from '../connections/database-error.js';
import { checkLockTable } from '../tables/lock-table.js';
import { makeDataSource } from '../connections/data-source.js';
import { rowsOf } from '../connections/query-result.js';
import { Sockets } from '../connections/sockets.js';
import { dialectOf } from '../databases.js';
import type { Query } from '../dialect/sql-dialect.js';
import { within } from '../connections/timeout.js';

const NOTHING_AT_START = { migrations: [], synchronize: false, dropSchema: false, migrationsRun: false, cache: false };
/** The longest time for an orderly end. */
const CLOSE_MS = 200;

export interface RowConnectionSettings {
  readonly options: DataSourceOptions;
  readonly table: string;
  readonly synchronize: boolean;
  readonly connectTimeoutMs: number;
}

/** One connection with the application's entities, which lends itself to one transaction at a time. */
export class RowConnection {
  readonly #dataSource: DataSource;
  readonly #end = new AbortController();
  #client: unknown;
  /** Sends by the one runner that may be in use. */
  #send: QueryRunner['query'] | undefined;
  #lastAnswer: Promise<unknown> = Promise.resolve();
  #served = false;
  readonly #sockets = new Sockets(() => this.#end.abort());

  private constructor(private readonly settings: RowConnectionSettings) {
    const { options } = settings;
    const ours = dialectOf(options.type).connection(options, this.#sockets);
    this.#dataSource = makeDataSource(Object.assign({ ...ours }, NOTHING_AT_START));
  }

  /** Within `connectTimeoutMs`, or nothing stays open. */
  static async open(settings: RowConnectionSettings): Promise<RowConnection> {
    const connection = new RowConnection(settings);
    try {
      const ready = connection.#prepare();
      await within(Deadline.after(settings.connectTimeoutMs), 'the database accepted no connection', ready);
      return connection;
    } catch (error) {
      connection.cut();
      throw cleanError(error);
    }
  }

  /** Aborts when the connection ends, and its transaction with it. */
  get ended(): AbortSignal {
    return this.#end.signal;
  }

  /** Whether somebody has had it before: it may have ended meanwhile without our noticing. */
  get served(): boolean {
    return this.#served;
  }

  /** The one runner that may be in use. Its statements go out one after the other. */
  async lend(): Promise<QueryRunner> {
    this.#served = true;
    const runner = this.#dataSource.createQueryRunner('master');
    const client: unknown = await runner.connect();
    // An 'error' without a listener ends the process; what it means is told by the socket's end.
    if (client !== this.#client && client instanceof EventEmitter) client.on('error', () => undefined);
    this.#client = client;
    const direct = runner.query.bind(runner);
    this.#send = direct;
    const query = (...args: Parameters<typeof direct>): Promise<unknown> => this.#inTurn(() => direct(...args));
    return Object.defineProperty(runner, 'query', { value: query, configurable: true });
  }

  /** A statement of the locks'. Its time begins when those before it are answered: a holder's own may take longer. */
  async ask(limitMs: number, ...[sql, parameters]: Parameters<Query>): ReturnType<Query> {
    const [send, turn] = [this.#send, this.#lastAnswer];
    const answer = this.#inTurn(async () => send?.(sql, [...parameters]));
    await turn;
    return rowsOf(await within(Deadline.after(limitMs), 'the database gave no answer', answer));
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

  async #prepare(): Promise<void> {
    const { options, table, synchronize } = this.settings;
    await this.#dataSource.initialize();
    const query: Query = async (sql, parameters) => rowsOf(await this.#dataSource.query(sql, [...parameters]));
    await checkLockTable(query, dialectOf(options.type), table, { create: synchronize });
    if (this.ended.aborted) await this.#dataSource.destroy();
  }
}
