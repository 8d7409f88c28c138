import { Semaphore, systemClock } from '../../../core/index.js';
import { cleanError, DatabaseError } from '../connections/database-error.js';
import { DatabaseHealth } from '../connections/database-health.js';
import { LONGEST_IDLE_MS } from '../connections/own-connections.js';
import { RowConnection, type RowConnectionSettings } from './row-connection.js';

/** Called before a caller waits until a connection is free. The signal aborts when it does no longer. */
export type PoolLine = (why: Error) => AbortSignal;

/** Connections of the locks' own, opened when needed. Each one serves one holder, or one who waits for a row. */
export class RowPool {
  readonly #all = new Set<RowConnection>();
  readonly #idle: { readonly connection: RowConnection; readonly since: number }[] = [];
  readonly #semaphore: Semaphore;
  /** Whether connections can be opened; those that are open speak for themselves. */
  readonly health = new DatabaseHealth(async () => this.release(await this.take()));
  #closed = false;

  constructor(
    private readonly settings: RowConnectionSettings,
    private readonly size: number,
  ) {
    this.#semaphore = new Semaphore(size);
  }

  /** Rejects when all are in use and there is no line to wait in, saying so. */
  async take(line?: PoolLine): Promise<RowConnection> {
    if (!this.#semaphore.enterAtOnce()) await this.#waitInLine(line);
    try {
      return this.#takeIdle() ?? (await this.#open());
    } catch (error) {
      this.#semaphore.leave();
      throw error;
    }
  }

  release(connection: RowConnection): void {
    if (this.#all.has(connection) && !this.#closed) this.#idle.push({ connection, since: systemClock.now() });
    else connection.cut();
    this.#semaphore.leave();
  }

  /** The server of one of them locks no more rows: the others lead to the same one. */
  endIdle(why: DatabaseError): void {
    this.#retireIdle();
    this.health.down(why.message);
  }

  /** One of them was silent when it was used. The others have slept too, and may be forgotten as well. */
  replaceIdle(): void {
    this.#retireIdle();
    this.health.reportReplacement('a connection that was used before');
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.health.end();
    await Promise.all(Array.from(this.#all, (connection) => connection.close()));
  }

  async #waitInLine(line: PoolLine | undefined): Promise<void> {
    const advice = 'raise poolSize, or hold fewer locks at a time';
    const why = `all ${this.size} connections for row locks are in use: ${advice}`;
    const full = new DatabaseError(why, 'ETIMEDOUT');
    if (!line || !(await this.#semaphore.enter({ signal: line(full) }))) throw full;
  }

  /** The one that was used last, and none that has slept for too long. */
  #takeIdle(): RowConnection | undefined {
    const last = this.#idle.pop();
    if (!last || systemClock.now() - last.since < LONGEST_IDLE_MS) return last?.connection;
    for (const { connection } of [last, ...this.#idle.splice(0)]) this.#retire(connection);
    return undefined;
  }

  #retireIdle(): void {
    for (const { connection } of this.#idle.splice(0)) this.#retire(connection);
  }

  #retire(connection: RowConnection): void {
    this.#all.delete(connection);
    void connection.close();
  }

  async #open(): Promise<RowConnection> {
    if (this.#closed) throw new DatabaseError('the row locks are closed', undefined);
    const connection = await this.#openNoted();
    this.#all.add(connection);
    connection.ended.addEventListener('abort', () => this.#forget(connection), { once: true });
    if (connection.ended.aborted || this.#closed) this.#forget(connection);
    return connection;
  }

  /** While others are open, the database serves: that there can be no more of them is for the operator to know. */
  async #openNoted(): Promise<RowConnection> {
    try {
      const connection = await RowConnection.open(this.settings);
      this.health.report('up');
      this.health.setAdvice('pool', undefined);
      return connection;
    } catch (error) {
      if (this.#all.size === 0) return await this.health.reportOutcomeOf(Promise.reject(error));
      const why = `the pool for row locks stays at ${this.#all.size} connections: ${cleanError(error).message}`;
      this.health.setAdvice('pool', why);
      throw error;
    }
  }

  #forget(connection: RowConnection): void {
    connection.cut();
    this.#all.delete(connection);
    const place = this.#idle.findIndex((idle) => idle.connection === connection);
    if (place >= 0) this.#idle.splice(place, 1);
  }
}
