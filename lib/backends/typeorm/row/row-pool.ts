import { Deadline } from '../../../core/index.js';
import { DatabaseError } from '../clean-error.js';
import { DatabaseHealth } from '../database-health.js';
import { Permits } from '../permits.js';
import { RowConnection, type RowConnectionSettings } from './row-connection.js';

/** Connections of the locks' own, opened when needed. Each one serves one holder, or one who waits for a row. */
export class RowPool {
  readonly #all = new Set<RowConnection>();
  readonly #idle: RowConnection[] = [];
  readonly #permits: Permits;
  /** Whether connections can be opened; those that are open speak for themselves. */
  readonly health = new DatabaseHealth(async () => this.giveBack(await this.take(Deadline.after(0))));
  #closed = false;

  constructor(
    private readonly settings: RowConnectionSettings,
    private readonly size: number,
  ) {
    this.#permits = new Permits(size);
  }

  /** Rejects at the deadline when all are in use, saying so. */
  async take(deadline: Deadline): Promise<RowConnection> {
    await this.#permits.take(deadline).catch(() => {
      const advice = 'raise poolSize, or hold fewer locks at a time';
      throw new DatabaseError(`all ${this.size} connections for row locks are in use: ${advice}`, 'ETIMEDOUT');
    });
    try {
      return this.#idle.pop() ?? (await this.#open());
    } catch (error) {
      this.#permits.give();
      throw error;
    }
  }

  giveBack(connection: RowConnection): void {
    if (this.#all.has(connection) && !this.#closed) this.#idle.push(connection);
    else connection.cut();
    this.#permits.give();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.health.end();
    await Promise.all(Array.from(this.#all, (connection) => connection.close()));
  }

  async #open(): Promise<RowConnection> {
    if (this.#closed) throw new DatabaseError('the row locks are closed', undefined);
    const connection = await this.health.note(() => RowConnection.open(this.settings));
    this.#all.add(connection);
    connection.ended.addEventListener('abort', () => this.#forget(connection), { once: true });
    if (connection.ended.aborted || this.#closed) this.#forget(connection);
    return connection;
  }

  #forget(connection: RowConnection): void {
    connection.cut();
    this.#all.delete(connection);
    const place = this.#idle.indexOf(connection);
    if (place >= 0) this.#idle.splice(place, 1);
  }
}
