import { type FailureKind, Semaphore, systemClock } from '../../../core/index.js';
import { toErrorWithoutStatement, DatabaseError } from '../connections/database-error.js';
import { DatabaseHealth } from '../connections/database-health.js';
import { IdleCheck, MAX_IDLE_MS } from '../connections/idle-check.js';
import { RowConnection, type RowConnectionSettings } from './row-connection.js';

/** Callback before a wait for a free connection. Returns a signal that aborts when the caller stops waiting. */
export type StartPoolWait = (obstacle: Error) => AbortSignal;

/** Error of a request that was not sent. The error says nothing about the server. */
class PoolExhaustedError extends DatabaseError {
  override get failureKind(): FailureKind {
    return 'value';
  }
}

export class RowPool {
  readonly #connections = new Set<RowConnection>();
  readonly #idleConnections: { readonly connection: RowConnection; readonly idleSince: number }[] = [];
  readonly #semaphore: Semaphore;
  readonly #idleCheck = new IdleCheck(() => this.#closeLongIdle());
  readonly health = new DatabaseHealth(() => this.#probe());
  #isClosed = false;

  constructor(
    private readonly settings: RowConnectionSettings,
    private readonly maxConnections: number,
  ) {
    this.#semaphore = new Semaphore(maxConnections);
  }

  /** Takes or opens a connection. When all are in use, waits if `startPoolWait` is given, and rejects otherwise. */
  async take(startPoolWait?: StartPoolWait): Promise<RowConnection> {
    if (!this.#semaphore.enterAtOnce()) await this.#waitForConnection(startPoolWait);
    try {
      return this.#takeIdle() ?? (await this.#open());
    } catch (error) {
      this.#semaphore.leave();
      throw error;
    }
  }

  release(connection: RowConnection): void {
    if (this.#connections.has(connection) && !this.#isClosed) {
      this.#idleConnections.push({ connection, idleSince: systemClock.now() });
      this.#idleCheck.schedule();
    } else connection.destroy();
    this.#semaphore.leave();
  }

  closeIdleAfterSwitchOver(error: DatabaseError): void {
    this.#closeIdleConnections();
    this.health.reportDown(error.message);
  }

  /** Closes all idle connections after one of them was silent: the network may have dropped the others, too. */
  closeIdleAfterSilence(): void {
    this.#closeIdleConnections();
    this.health.reportReplacement('a connection that was used before');
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.health.end();
    this.#idleCheck.cancel();
    await Promise.all(Array.from(this.#connections, (connection) => connection.close()));
  }

  /** Opens a connection, because an idle one would not show that the database answers. */
  async #probe(): Promise<void> {
    this.#closeIdleConnections();
    this.release(await this.take());
  }

  async #waitForConnection(startPoolWait: StartPoolWait | undefined): Promise<void> {
    const advice = 'raise poolSize, or hold fewer locks at a time';
    const message = `all ${this.maxConnections} connections for row locks are in use: ${advice}`;
    const poolExhaustedError = new PoolExhaustedError(message, 'ETIMEDOUT');
    if (!startPoolWait || !(await this.#semaphore.enter({ signal: startPoolWait(poolExhaustedError) })))
      throw poolExhaustedError;
  }

  /**
   * Returns the connection that was used last. Closes all idle ones if that one was idle for too long, because the
   * others were idle for longer.
   */
  #takeIdle(): RowConnection | undefined {
    const lastUsedEntry = this.#idleConnections.pop();
    if (!lastUsedEntry || systemClock.now() - lastUsedEntry.idleSince < MAX_IDLE_MS) return lastUsedEntry?.connection;
    for (const { connection } of [lastUsedEntry, ...this.#idleConnections.splice(0)]) this.#closeConnection(connection);
    return undefined;
  }

  /** Closes the connections that were idle for long. Returns whether any connection is still open. */
  #closeLongIdle(): boolean {
    const maxIdleSince = systemClock.now() - MAX_IDLE_MS;
    const longIdleCount = this.#idleConnections.filter(({ idleSince }) => idleSince <= maxIdleSince).length;
    // The list is ordered by the time of the last use, the oldest first.
    for (const { connection } of this.#idleConnections.splice(0, longIdleCount)) this.#closeConnection(connection);
    return this.#connections.size > 0;
  }

  #closeIdleConnections(): void {
    for (const { connection } of this.#idleConnections.splice(0)) this.#closeConnection(connection);
  }

  #closeConnection(connection: RowConnection): void {
    this.#connections.delete(connection);
    void connection.close();
  }

  async #open(): Promise<RowConnection> {
    if (this.#isClosed) throw new DatabaseError('the row locks are closed', undefined);
    const connection = await this.#openAndReport();
    this.#connections.add(connection);
    connection.endSignal.addEventListener('abort', () => this.#removeConnection(connection), { once: true });
    if (connection.endSignal.aborted || this.#isClosed) this.#removeConnection(connection);
    return connection;
  }

  /** Opens a connection. While others are open, a failure becomes advice in `health`, and its status stays `up`. */
  async #openAndReport(): Promise<RowConnection> {
    try {
      const connection = await RowConnection.open(this.settings);
      this.health.report('up');
      this.health.setAdvice('pool', undefined);
      return connection;
    } catch (error) {
      if (this.#connections.size === 0) return await this.health.reportOutcomeOf(Promise.reject(error));
      const advice = `the pool for row locks stays at ${this.#connections.size} connections: ${toErrorWithoutStatement(error).message}`;
      this.health.setAdvice('pool', advice);
      throw error;
    }
  }

  #removeConnection(connection: RowConnection): void {
    connection.destroy();
    this.#connections.delete(connection);
    const index = this.#idleConnections.findIndex((entry) => entry.connection === connection);
    if (index >= 0) this.#idleConnections.splice(index, 1);
  }
}
