import { Deadline } from '../../core/index.js';
import { DatabaseError } from './clean-error.js';
import { DatabaseHealth } from './database-health.js';
import { type ConnectionSettings, OwnConnection } from './own-connection.js';
import { Permits } from './permits.js';
import type { Query } from './sql-dialect.js';

/** The few connections that all statements of the locks share. Opened when needed, and again when lost. */
export class OwnConnections {
  readonly #all = new Set<OwnConnection>();
  readonly #idle: OwnConnection[] = [];
  readonly #permits: Permits;
  readonly health = new DatabaseHealth(() => this.query('select 1', []));
  #closed = false;

  constructor(private readonly settings: ConnectionSettings) {
    this.#permits = new Permits(settings.dialect.connections);
  }

  /** Settles within a few times its time-outs, whatever the server does: waiting, connecting and the statement. */
  readonly query: Query = (sql, parameters) =>
    this.health.note(() => this.#onSome((connection) => connection.run(sql, parameters)));

  async close(): Promise<void> {
    this.#closed = true;
    this.health.end();
    await Promise.all(Array.from(this.#all, (connection) => connection.close()));
  }

  async #onSome<T>(statement: (connection: OwnConnection) => Promise<T>): Promise<T> {
    const { connectTimeoutMs, statementTimeoutMs } = this.settings;
    await this.#permits.take(Deadline.after(connectTimeoutMs));
    const deadline = Deadline.after(statementTimeoutMs);
    try {
      for (;;) {
        const used = this.#idle.pop();
        const connection = used ?? (await this.#open());
        try {
          return await this.#on(connection, statement);
        } catch (error) {
          // A connection may have died in its sleep, or lead to a server that no longer takes writes. All statements may
          // be sent twice.
          if (!used || deadline.passed || this.#closed || connection.isBusy(error)) throw error;
        }
      }
    } finally {
      this.#permits.give();
    }
  }

  async #on<T>(connection: OwnConnection, statement: (connection: OwnConnection) => Promise<T>): Promise<T> {
    try {
      const result = await statement(connection);
      if (this.#all.has(connection)) this.#idle.push(connection);
      return result;
    } catch (error) {
      if (connection.isBusy(error) && this.#all.has(connection)) this.#idle.push(connection);
      else this.#drop(connection);
      throw error;
    }
  }

  async #open(): Promise<OwnConnection> {
    if (this.#closed) throw new DatabaseError('the lock connection is closed', undefined);
    const connection = new OwnConnection(this.settings, () => this.#onLost(connection));
    this.#all.add(connection);
    try {
      await connection.open();
      return connection;
    } catch (error) {
      this.#all.delete(connection);
      throw error;
    }
  }

  #drop(connection: OwnConnection): void {
    this.#all.delete(connection);
    connection.destroy();
    this.health.recover();
  }

  #onLost(connection: OwnConnection): void {
    this.#all.delete(connection);
    const place = this.#idle.indexOf(connection);
    if (place >= 0) this.#idle.splice(place, 1);
    this.health.down('the connection was lost');
  }
}
