import { type BackendHealth, Deadline, LockConfigurationError, systemClock } from '../../core/index.js';
import { pause } from '../../core/timers.js';
import { DatabaseError } from './clean-error.js';
import { type ConnectionSettings, OwnConnection } from './own-connection.js';
import { Permits } from './permits.js';
import type { Query } from './sql-dialect.js';

const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 1_000;

/** The few connections that all statements of the locks share. Opened when needed, and again when lost. */
export class OwnConnections {
  readonly #all = new Set<OwnConnection>();
  readonly #idle: OwnConnection[] = [];
  readonly #permits: Permits;
  readonly #listeners = new Set<(health: BackendHealth) => void>();
  #health: BackendHealth = { status: 'idle' };
  #recovering = false;
  #closed = false;

  constructor(private readonly settings: ConnectionSettings) {
    this.#permits = new Permits(settings.dialect.connections);
  }

  get health(): BackendHealth {
    return this.#health;
  }

  onHealthChange(listener: (health: BackendHealth) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Settles within a few times its time-outs, whatever the server does: waiting, connecting and the statement. */
  readonly query: Query = async (sql, parameters) => {
    try {
      const rows = await this.#onSome((connection) => connection.run(sql, parameters));
      this.#report({ status: 'up' });
      return rows;
    } catch (error) {
      if (!(error instanceof LockConfigurationError)) this.#report({ status: 'down', detail: String(error) });
      throw error;
    }
  };

  async close(): Promise<void> {
    this.#closed = true;
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
    void this.#recover();
  }

  #onLost(connection: OwnConnection): void {
    this.#all.delete(connection);
    const place = this.#idle.indexOf(connection);
    if (place >= 0) this.#idle.splice(place, 1);
    this.#report({ status: 'down', detail: 'the connection was lost' });
    void this.#recover();
  }

  /** Nobody may need the database for a long time, but whoever holds a lock wants to know soon whether it is still there. */
  async #recover(): Promise<void> {
    if (this.#recovering) return;
    this.#recovering = true;
    for (
      let delay = FIRST_RETRY_MS;
      !this.#closed && !(await this.#answers());
      delay = Math.min(delay * 2, LONGEST_RETRY_MS)
    ) {
      await pause(systemClock, delay, { background: true });
    }
    this.#recovering = false;
  }

  async #answers(): Promise<boolean> {
    try {
      await this.query('select 1', []);
      return true;
    } catch {
      return false;
    }
  }

  #report(health: BackendHealth): void {
    if (this.#closed) return;
    const changed = health.status !== this.#health.status;
    this.#health = health;
    if (changed) for (const listener of this.#listeners) listener(health);
  }
}
