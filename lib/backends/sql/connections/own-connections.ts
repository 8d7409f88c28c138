import { Deadline, Semaphore, systemClock } from '../../../core/index.js';
import { DatabaseError, hasErrorCode } from './database-error.js';
import { DatabaseHealth } from './database-health.js';
import { IdleCheck, MAX_IDLE_MS } from './idle-check.js';
import { type ConnectionSettings, OwnConnection, pauseBeforeRetry } from './own-connection.js';
import type { Query } from './query.js';
import { TimeoutError } from './timeout.js';

/** Connections that the library opens itself, beside those of the application. */
export class OwnConnections {
  readonly #connections = new Set<OwnConnection>();
  readonly #idleConnections: OwnConnection[] = [];
  readonly #semaphore: Semaphore;
  readonly #idleCheck = new IdleCheck(() => this.#closeLongIdleConnections());
  readonly health = new DatabaseHealth(() => this.query('select 1', []));
  #lastAnswerAt = -Infinity;
  #isClosed = false;

  constructor(private readonly settings: ConnectionSettings) {
    this.#semaphore = new Semaphore(settings.database.dialect.maxConnections);
  }

  /** Waits for a free connection, up to `connectTimeoutMs` after the later of the call and the server's last answer. */
  readonly query: Query = (sql, parameters) => this.health.reportOutcomeOf(this.#queryWhenFree(sql, parameters, false));

  /** Runs a holder's statement before the waiting statements of callers who request a lock. */
  readonly urgentQuery: Query = (sql, parameters) =>
    this.health.reportOutcomeOf(this.#queryWhenFree(sql, parameters, true));

  closeIdleConnections(): void {
    for (const connection of this.#idleConnections.splice(0)) this.#closeConnection(connection);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.health.end();
    this.#idleCheck.cancel();
    await Promise.all(Array.from(this.#connections, (connection) => connection.close()));
  }

  async #queryWhenFree(sql: string, parameters: readonly unknown[], isUrgent: boolean): ReturnType<Query> {
    if (!this.#semaphore.enterAtOnce()) await this.#waitForConnection(isUrgent);
    try {
      return await this.#queryOnAnyConnection(sql, parameters);
    } finally {
      this.#semaphore.leave();
    }
  }

  async #waitForConnection(isUrgent: boolean): Promise<void> {
    const calledAt = systemClock.now();
    const getDeadline = (): Deadline =>
      Deadline.after(this.settings.connectTimeoutMs, systemClock, Math.max(calledAt, this.#lastAnswerAt));
    const hasEntered = await this.#semaphore.enter({ deadline: getDeadline, inHurry: isUrgent });
    if (!hasEntered) throw new TimeoutError('the locks had no connection free');
  }

  /** Retries after a failure: an idle connection may be dead, or its server may have become a replica in a failover. */
  async #queryOnAnyConnection(...statement: Parameters<Query>): ReturnType<Query> {
    const deadline = Deadline.after(this.settings.requestTimeoutMs);
    for (let idleConnection = this.#takeIdleConnection(); idleConnection; idleConnection = this.#takeIdleConnection()) {
      try {
        return await this.#queryOn(idleConnection, statement);
      } catch (error) {
        if (this.#isClosed || idleConnection.isUsableAfter(error)) throw error;
        if (error instanceof TimeoutError) return this.#retryAfterTimeout(statement);
        if (deadline.passed) throw error;
      }
    }
    return this.#queryOn(await this.#open(this.#openTimeoutMs), statement);
  }

  /** Tries again after a time-out, on a new connection. Closes the other idle connections: they may be dead, too. */
  async #retryAfterTimeout(statement: Parameters<Query>): ReturnType<Query> {
    const { connectTimeoutMs, requestTimeoutMs } = this.settings;
    this.closeIdleConnections();
    const rows = await this.#queryOn(await this.#open(Math.min(connectTimeoutMs, requestTimeoutMs)), statement);
    this.health.reportReplacement('a connection that was used before');
    return rows;
  }

  async #queryOn(connection: OwnConnection, statement: Parameters<Query>): ReturnType<Query> {
    try {
      const rows = await connection.query(...statement);
      this.#lastAnswerAt = systemClock.now();
      if (this.#connections.has(connection)) this.#keepForReuse(connection);
      return rows;
    } catch (error) {
      if (connection.isUsableAfter(error) && this.#connections.has(connection)) this.#keepForReuse(connection);
      else this.#destroyConnection(connection);
      throw error;
    }
  }

  #keepForReuse(connection: OwnConnection): void {
    this.#idleConnections.push(connection);
    this.#idleCheck.schedule();
  }

  /** Returns whether any connection is still open. */
  #closeLongIdleConnections(): boolean {
    const longIdleCount = this.#idleConnections.filter(({ idleMs }) => idleMs >= MAX_IDLE_MS).length;
    // The list is ordered by the time of the last use, the oldest first.
    for (const connection of this.#idleConnections.splice(0, longIdleCount)) this.#closeConnection(connection);
    return this.#connections.size > 0;
  }

  /**
   * Returns the connection that was used last. If even that one was idle for too long, closes all idle connections, and
   * returns `undefined`.
   */
  #takeIdleConnection(): OwnConnection | undefined {
    const connection = this.#idleConnections.pop();
    if (!connection || connection.idleMs < MAX_IDLE_MS) return connection;
    this.#closeConnection(connection);
    this.closeIdleConnections();
    return undefined;
  }

  get #openTimeoutMs(): number {
    const { connectTimeoutMs, database } = this.settings;
    return Math.max(connectTimeoutMs, database.startTimeoutMs ?? 0);
  }

  /** Opens again while another process has a SQLite file for itself, as at the first start of several processes. */
  async #open(connectTimeoutMs: number): Promise<OwnConnection> {
    const { requestTimeoutMs, database } = this.settings;
    const retryDeadline = Deadline.after(requestTimeoutMs);
    for (;;) {
      try {
        return await this.#openOnce(connectTimeoutMs);
      } catch (error) {
        if (retryDeadline.passed || !hasErrorCode(error, database.dialect.busyCodePattern)) throw error;
        await pauseBeforeRetry();
      }
    }
  }

  async #openOnce(connectTimeoutMs: number): Promise<OwnConnection> {
    if (this.#isClosed) throw new DatabaseError('the lock connection is closed', undefined);
    const connection = new OwnConnection(this.settings, () => this.#handleLoss(connection));
    this.#connections.add(connection);
    try {
      await connection.open(connectTimeoutMs);
      return connection;
    } catch (error) {
      this.#connections.delete(connection);
      throw error;
    }
  }

  #closeConnection(connection: OwnConnection): void {
    this.#connections.delete(connection);
    void connection.close();
  }

  #destroyConnection(connection: OwnConnection): void {
    this.#connections.delete(connection);
    connection.destroy();
    this.health.probeUntilAnswered();
  }

  #handleLoss(connection: OwnConnection): void {
    this.#connections.delete(connection);
    const index = this.#idleConnections.indexOf(connection);
    if (index >= 0) this.#idleConnections.splice(index, 1);
    this.health.reportDown('the connection was lost');
  }
}
