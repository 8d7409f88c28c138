import { randomInt } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { Deadline, pause, systemClock } from '../../../core/index.js';
import {
  cleanError,
  DatabaseError,
  isRefusedValueError,
  isAnswer,
  isConnectionGone,
  isReadOnlyError,
} from './database-error.js';
import type { Query, Rows } from './query.js';
import { Sockets } from './sockets.js';
import type { DriverConnection, SqlDatabase } from './sql-database.js';
import { TimeoutError, within } from './timeout.js';

const BUSY_PAUSE_MS = 10;

/** The longest time for an orderly end. */
const CLOSE_MS = 200;

export interface ConnectionSettings {
  readonly database: SqlDatabase;
  readonly connectTimeoutMs: number;
  /** The option that `connectTimeoutMs` comes from, for errors. */
  readonly connectTimeoutOption?: 'connectTimeoutMs' | 'sessionTtlMs';
  readonly requestTimeoutMs: number;
  /** Runs on each new connection before anything else. */
  readonly onOpen: (query: Query) => Promise<void>;
}

/**
 * One connection of the locks' own, made like the application's. A lock on the application's connection could end up
 * inside one of its transactions, where a rollback would undo it. SQLite has a single connection for all of them. The
 * lock would also wait for its turn in a pool that those who wait for locks have exhausted.
 */
export class OwnConnection {
  readonly #sockets = new Sockets(() => this.#onSocketClosed());
  readonly #connection: DriverConnection;
  #isOpen = false;
  client: unknown;
  #ended = false;
  #keepsPlans = false;
  #answeredAt = systemClock.now();

  constructor(
    private readonly settings: ConnectionSettings,
    /** Called when the connection ends and this class did not end it. */
    private readonly onLost: () => void,
  ) {
    this.#connection = settings.database.connection(this.#sockets);
  }

  /** @throws LockConfigurationError when the end of this connection would not be noticed */
  assertWatched(strategy: 'row' | 'session'): void {
    this.#sockets.assertUsed(strategy);
  }

  /** Time since the last answer; 0 where there is no network that could forget the connection. */
  get idleMs(): number {
    return this.settings.database.dialect.runAlone ? 0 : systemClock.now() - this.#answeredAt;
  }

  /** Within `connectTimeoutMs`, or nothing stays open. */
  async open(connectTimeoutMs = this.settings.connectTimeoutMs): Promise<void> {
    const { database, requestTimeoutMs, onOpen, connectTimeoutOption } = this.settings;
    const setting = connectTimeoutOption && `${connectTimeoutOption}: ${connectTimeoutMs}`;
    try {
      await within(Deadline.after(connectTimeoutMs), 'the database accepted no connection', this.#connect(), setting);
      this.#keepsPlans = await database.dialect.prepare(this.run, requestTimeoutMs, this.client);
      await onOpen(this.run);
    } catch (error) {
      this.destroy();
      throw cleanError(error);
    }
  }

  /** One statement at a time. Repeats it while the database is too busy, and ends a connection that is silent. */
  readonly run: Query = async (sql, parameters) => {
    const retries = Deadline.after(this.settings.requestTimeoutMs);
    for (;;) {
      try {
        const rows = await this.#ask(sql, parameters);
        this.#answeredAt = systemClock.now();
        return rows;
      } catch (error) {
        if (error instanceof TimeoutError) this.destroy();
        const cause = cleanError(error);
        if (cause instanceof DatabaseError) cause.isAnswer = isAnswerOfServer(cause);
        if (isRefusedValueError(cause)) this.#answeredAt = systemClock.now();
        if (!this.#isBusy(cause)) throw cause;
        this.#answeredAt = systemClock.now();
        if (retries.passed) throw cause;
        await pause(systemClock, randomInt(BUSY_PAUSE_MS, 2 * BUSY_PAUSE_MS));
      }
    }
  };

  /** Whether the connection is as good as before after this failure of `run`. */
  isGoodAfter(error: unknown): boolean {
    return this.#isBusy(error) || isRefusedValueError(error);
  }

  #isBusy(error: unknown): boolean {
    return isAnswer(error, this.settings.database.dialect.busy);
  }

  /** Ends in good order, or cuts the connection when the server does not answer. */
  async close(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await within(Deadline.after(CLOSE_MS), 'no goodbye', this.#connection.end()).catch(() => undefined);
    this.#sockets.destroy();
  }

  destroy(): void {
    this.#ended = true;
    this.#sockets.destroy();
    this.#connection.end().catch(() => undefined);
  }

  async #connect(): Promise<void> {
    const client = await this.#connection.connect();
    // Some drivers report a lost connection more than once, and an 'error' without a listener ends the process.
    if (client instanceof EventEmitter) client.on('error', () => undefined);
    this.client = client;
    this.#isOpen = true;
  }

  #ask(sql: string, parameters: readonly unknown[]): Promise<Rows> | Rows {
    if (!this.#isOpen || this.#ended) throw new DatabaseError('the connection is closed', undefined);
    const { requestTimeoutMs, database } = this.settings;
    const { dialect } = database;
    if (dialect.runAlone) return dialect.runAlone(this.client, sql, parameters);
    const answer =
      this.#keepsPlans && dialect.runPrepared
        ? dialect.runPrepared(this.client, sql, parameters)
        : this.#connection.query(sql, parameters);
    return within(Deadline.after(requestTimeoutMs), 'the database gave no answer', answer);
  }

  #onSocketClosed(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#connection.end().catch(() => undefined);
    this.onLost();
  }
}

function isAnswerOfServer(error: DatabaseError): boolean {
  return !(error instanceof TimeoutError) && !isConnectionGone(error) && !isReadOnlyError(error);
}
