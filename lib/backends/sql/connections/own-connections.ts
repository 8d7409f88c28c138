import { Deadline, Semaphore, systemClock } from '../../../core/index.js';
import { DatabaseError } from './database-error.js';
import { DatabaseHealth } from './database-health.js';
import { type ConnectionSettings, OwnConnection } from './own-connection.js';
import type { Query } from './query.js';
import { TimeoutError } from './timeout.js';

/** A connection that was idle for longer is replaced before its next use, since the network may have forgotten it. */
export const LONGEST_IDLE_MS = 30_000;

/** The few connections that all statements of the locks share. Opened when needed, and again when lost. */
export class OwnConnections {
  readonly #all = new Set<OwnConnection>();
  readonly #idle: OwnConnection[] = [];
  readonly #semaphore: Semaphore;
  readonly health = new DatabaseHealth(() => this.query('select 1', []));
  #answeredAt = -Infinity;
  #closed = false;

  constructor(private readonly settings: ConnectionSettings) {
    this.#semaphore = new Semaphore(settings.database.dialect.connections);
  }

  /** Settles within a few times its time-outs, or later behind others while the server answers. */
  readonly query: Query = (sql, parameters) => this.health.reportOutcomeOf(this.#ask(sql, parameters, false));

  /** For holders: goes before all who ask for a lock. */
  readonly urgent: Query = (sql, parameters) => this.health.reportOutcomeOf(this.#ask(sql, parameters, true));

  /** The next statements find new ones. */
  retireIdle(): void {
    for (const connection of this.#idle.splice(0)) this.#retire(connection);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.health.end();
    await Promise.all(Array.from(this.#all, (connection) => connection.close()));
  }

  async #ask(sql: string, parameters: readonly unknown[], inHurry: boolean): ReturnType<Query> {
    if (!this.#semaphore.enterAtOnce()) await this.#wait(inHurry);
    try {
      return await this.#onSome(sql, parameters);
    } finally {
      this.#semaphore.leave();
    }
  }

  async #wait(inHurry: boolean): Promise<void> {
    const calledAt = systemClock.now();
    const deadline = (): Deadline =>
      Deadline.after(this.settings.connectTimeoutMs, systemClock, Math.max(calledAt, this.#answeredAt));
    const entered = await this.#semaphore.enter({ deadline, inHurry });
    if (!entered) throw new TimeoutError('the locks had no connection free');
  }

  /** An idle connection may be dead, or lead to a replica. Every statement may be sent twice. */
  async #onSome(...statement: Parameters<Query>): ReturnType<Query> {
    const deadline = Deadline.after(this.settings.requestTimeoutMs);
    for (let used = this.#takeIdle(); used; used = this.#takeIdle()) {
      try {
        return await this.#on(used, statement);
      } catch (error) {
        if (this.#closed || used.isGoodAfter(error)) throw error;
        if (error instanceof TimeoutError) return this.#afterSilence(statement);
        if (deadline.passed) throw error;
      }
    }
    return this.#on(await this.#open(this.settings.connectTimeoutMs), statement);
  }

  /** Tries once on a new connection: the idle ones slept as long as the one that died. */
  async #afterSilence(statement: Parameters<Query>): ReturnType<Query> {
    const { connectTimeoutMs, requestTimeoutMs } = this.settings;
    this.retireIdle();
    const rows = await this.#on(await this.#open(Math.min(connectTimeoutMs, requestTimeoutMs)), statement);
    this.health.reportReplacement('a connection that was used before');
    return rows;
  }

  async #on(connection: OwnConnection, statement: Parameters<Query>): ReturnType<Query> {
    try {
      const rows = await connection.run(...statement);
      this.#answeredAt = systemClock.now();
      if (this.#all.has(connection)) this.#idle.push(connection);
      return rows;
    } catch (error) {
      if (connection.isGoodAfter(error) && this.#all.has(connection)) this.#idle.push(connection);
      else this.#drop(connection);
      throw error;
    }
  }

  /** The one that was used last, and none that has slept for too long. */
  #takeIdle(): OwnConnection | undefined {
    const connection = this.#idle.pop();
    if (!connection || connection.idleMs < LONGEST_IDLE_MS) return connection;
    this.#retire(connection);
    this.retireIdle();
    return undefined;
  }

  async #open(withinMs: number): Promise<OwnConnection> {
    if (this.#closed) throw new DatabaseError('the lock connection is closed', undefined);
    const connection = new OwnConnection(this.settings, () => this.#onLost(connection));
    this.#all.add(connection);
    try {
      await connection.open(withinMs);
      return connection;
    } catch (error) {
      this.#all.delete(connection);
      throw error;
    }
  }

  #retire(connection: OwnConnection): void {
    this.#all.delete(connection);
    void connection.close();
  }

  #drop(connection: OwnConnection): void {
    this.#all.delete(connection);
    connection.destroy();
    this.health.probeUntilAnswered();
  }

  #onLost(connection: OwnConnection): void {
    this.#all.delete(connection);
    const place = this.#idle.indexOf(connection);
    if (place >= 0) this.#idle.splice(place, 1);
    this.health.down('the connection was lost');
  }
}
