import { randomInt } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { Deadline, pause, systemClock } from '../../../core/index.js';
import {
  toErrorWithoutStatement,
  DatabaseError,
  isRefusedValueError,
  hasErrorCode,
  isConnectionGone,
  isReadOnlyError,
} from './database-error.js';
import type { Query, Rows } from './query.js';
import { Sockets } from './sockets.js';
import type { DriverConnection, SqlDatabase } from './sql-database.js';
import { TimeoutError, settleByDeadline } from './timeout.js';

const MIN_BUSY_PAUSE_MS = 10;

const CLOSE_TIMEOUT_MS = 200;

export interface ConnectionSettings {
  readonly database: SqlDatabase;
  readonly connectTimeoutMs: number;
  readonly connectTimeoutOption?: 'connectTimeoutMs' | 'sessionTtlMs';
  /** Time for all addresses of the server together. @default connectTimeoutMs */
  readonly addressesTimeoutMs?: number;
  readonly requestTimeoutMs: number;
  /** Called for each new connection before it is used. */
  readonly onOpen: (query: Query) => Promise<void>;
}

/**
 * Connection that the locks do not share with the application. Otherwise a rollback of the application could undo a
 * lock, and waiting callers could use up the application's pool.
 */
export class OwnConnection {
  readonly #sockets = new Sockets();
  readonly #connection: DriverConnection;
  #isOpen = false;
  client: unknown;
  #hasEnded = false;
  #canPrepareStatements = false;
  #lastAnswerAt = systemClock.now();

  constructor(
    private readonly settings: ConnectionSettings,
    /** Called when the connection ends and this class did not end it. */
    private readonly onLost: () => void,
  ) {
    this.#connection = settings.database.createConnection(this.#sockets);
  }

  /** @throws LockConfigurationError when the end of this connection would not be noticed */
  assertSocketIsWatched(strategy: 'row' | 'session'): void {
    this.#sockets.assertSocketIsWatched(strategy);
  }

  /** Milliseconds since the last answer; 0 for SQLite, where no network can forget the connection. */
  get idleMs(): number {
    return this.settings.database.dialect.runStatementSafely ? 0 : systemClock.now() - this.#lastAnswerAt;
  }

  /** Connects within `connectTimeoutMs`, and prepares the session. Destroys the connection when either fails. */
  async open(connectTimeoutMs = this.settings.connectTimeoutMs): Promise<void> {
    const { database, requestTimeoutMs, onOpen, connectTimeoutOption } = this.settings;
    const timeoutOption = connectTimeoutOption && `${connectTimeoutOption}: ${connectTimeoutMs}`;
    try {
      await settleByDeadline(
        Deadline.after(connectTimeoutMs),
        'the database accepted no connection',
        this.#connect(connectTimeoutMs),
        timeoutOption,
      );
      this.#canPrepareStatements = await database.dialect.prepareConnection(this.query, requestTimeoutMs, this.client);
      await onOpen(this.query);
    } catch (error) {
      this.destroy();
      throw toErrorWithoutStatement(error);
    }
  }

  /**
   * Repeats the statement while the database is too busy, for up to `requestTimeoutMs`. Ends the connection when no
   * answer comes.
   */
  readonly query: Query = async (sql, parameters) => {
    const retryDeadline = Deadline.after(this.settings.requestTimeoutMs);
    for (;;) {
      try {
        const rows = await this.#send(sql, parameters);
        this.#lastAnswerAt = systemClock.now();
        return rows;
      } catch (error) {
        if (error instanceof TimeoutError) this.destroy();
        const cause = toErrorWithoutStatement(error);
        if (cause instanceof DatabaseError) cause.isServerAnswer = isAnswerOfWritableServer(cause);
        if (isReadOnlyError(cause)) this.#connection.tryAddressLast?.();
        if (isRefusedValueError(cause)) this.#lastAnswerAt = systemClock.now();
        if (!this.#isBusyError(cause)) throw cause;
        this.#lastAnswerAt = systemClock.now();
        if (retryDeadline.passed) throw cause;
        await pauseBeforeRetry();
      }
    }
  };

  isUsableAfter(error: unknown): boolean {
    return this.#isBusyError(error) || isRefusedValueError(error);
  }

  #isBusyError(error: unknown): boolean {
    return hasErrorCode(error, this.settings.database.dialect.busyCodePattern);
  }

  async close(): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    await settleByDeadline(Deadline.after(CLOSE_TIMEOUT_MS), 'no goodbye', this.#connection.end()).catch(
      () => undefined,
    );
    this.#sockets.destroy();
  }

  destroy(): void {
    this.#sockets.destroy();
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#connection.end().catch(() => undefined);
  }

  async #connect(connectTimeoutMs: number): Promise<void> {
    const client = await this.#connection.connect(this.settings.addressesTimeoutMs ?? connectTimeoutMs);
    // An 'error' event without a listener ends the process. Some drivers report a lost connection more than once.
    if (client instanceof EventEmitter) client.on('error', () => undefined);
    this.client = client;
    this.#isOpen = true;
    this.#sockets.setEndListener(() => this.#onSocketClosed());
  }

  #send(sql: string, parameters: readonly unknown[]): Promise<Rows> | Rows {
    if (!this.#isOpen || this.#hasEnded) throw new DatabaseError('the connection is closed', undefined);
    const { requestTimeoutMs, database } = this.settings;
    const { dialect } = database;
    if (dialect.runStatementSafely) return dialect.runStatementSafely(this.client, sql, parameters);
    const answer =
      this.#canPrepareStatements && dialect.runPrepared
        ? dialect.runPrepared(this.client, sql, parameters)
        : this.#connection.query(sql, parameters);
    return settleByDeadline(Deadline.after(requestTimeoutMs), 'the database gave no answer', answer);
  }

  #onSocketClosed(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#connection.end().catch(() => undefined);
    this.onLost();
  }
}

export function pauseBeforeRetry(): Promise<void> {
  return pause(systemClock, randomInt(MIN_BUSY_PAUSE_MS, 2 * MIN_BUSY_PAUSE_MS));
}

function isAnswerOfWritableServer(error: DatabaseError): boolean {
  return !(error instanceof TimeoutError) && !isConnectionGone(error) && !isReadOnlyError(error);
}
