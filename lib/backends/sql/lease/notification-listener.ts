import { systemClock, retryUntilAnswered, type WakeUps } from '../../../core/index.js';
import { cleanError } from '../connections/database-error.js';
import { type ConnectionSettings, OwnConnection } from '../connections/own-connection.js';
import type { OwnConnections } from '../connections/own-connections.js';
import { TimeoutError } from '../connections/timeout.js';
import type { WaitingLine } from '../dialect/sql-dialect.js';
import { LookOut } from './look-out.js';

/** The longest wait for an answer on the listening connection. After it the connection is replaced. */
const LONGEST_SILENCE_MS = 1_000;

/** One look after 10,000 waiters took longer than the server may be silent. */
const LOOKED_AT_AT_ONCE = 1_000;

/** A connection that was quiet for longer is probed before the next waiter relies on it. */
const TRUSTED_QUIET_MS = 3_000;

/** The connection on which the server notifies waiters of their turn. Opened when the first caller has to wait. */
export class NotificationListener {
  /** Each waiter registers here. */
  readonly lookOut: LookOut;
  readonly #settings: ConnectionSettings;
  #connection: OwnConnection | undefined;
  #listening = false;
  /** No notification can arrive, as behind a pooler. */
  #deaf = false;
  #opening = false;
  #looking = false;
  /** Some waiters may sleep until a notification. */
  #relied = false;
  #closed = false;
  #heardAt = 0;

  constructor(
    settings: ConnectionSettings,
    private readonly connections: OwnConnections,
    private readonly table: string,
    private readonly line: WaitingLine,
    private readonly wakeUps: WakeUps,
  ) {
    this.lookOut = new LookOut(() => void this.#look());
    this.#settings = { ...settings, requestTimeoutMs: Math.min(settings.requestTimeoutMs, LONGEST_SILENCE_MS) };
  }

  /** Whether notifications arrive. Until they do, waiters must ask. */
  listen(): boolean {
    if (!this.#listening && !this.#deaf) void this.#listen();
    return this.#listening;
  }

  /** A waiter begins to rely on notifications. */
  trust(): void {
    if (systemClock.now() - this.#heardAt > TRUSTED_QUIET_MS) void this.#look();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#connection?.close();
  }

  /**
   * Wakes waiters whose turn has come without their hearing of it. An answer is a sign of life, too. A connection
   * without one is replaced, since the network may have forgotten it without saying so.
   */
  async #look(): Promise<void> {
    const { line } = this.lookOut;
    const connection = this.#connection;
    if (line.size === 0 || !connection || !this.#listening || this.#looking) return;
    this.#looking = true;
    try {
      const waiting = [...line];
      for (let from = 0; from < waiting.length; from += LOOKED_AT_AT_ONCE) {
        const some = new Map(waiting.slice(from, from + LOOKED_AT_AT_ONCE));
        for (const message of await this.line.look(connection.run, this.table, some)) this.wakeUps.deliver(message);
        this.#heardAt = systemClock.now();
      }
    } catch (error) {
      connection.destroy();
      if (error instanceof TimeoutError) {
        // The network may have forgotten the other connections, too.
        this.connections.health.reportReplacement('the connection that listens for releases');
        this.connections.retireIdle();
      }
      this.#onLost(connection);
    } finally {
      this.#looking = false;
    }
  }

  async #listen(): Promise<void> {
    if (this.#opening) return;
    this.#opening = true;
    await retryUntilAnswered(
      () => this.#open(),
      () => !this.#closed && this.wakeUps.isAnyWaiting,
    );
    this.#opening = false;
    this.connections.health.setAdvice('listener', undefined);
  }

  async #open(): Promise<boolean> {
    const connection = new OwnConnection(this.#settings, () => this.#onLost(connection));
    this.#connection = connection;
    try {
      await connection.open();
      const { run, client } = connection;
      this.#deaf = !(await this.line.listen(run, client, this.table, (message) => this.#hear(message)));
    } catch (error) {
      connection.destroy();
      // Waiters ask by themselves until the next connection listens.
      if (this.#relied) this.wakeUps.wakeAll();
      this.#relied = false;
      const why = `nobody listens for releases, so those who wait ask again and again: ${cleanError(error).message}`;
      this.connections.health.setAdvice('listener', why);
      return false;
    }
    if (this.#deaf) {
      await connection.close();
      return true;
    }
    if (this.#connection !== connection) return false;
    this.#listening = true;
    this.#relied = true;
    this.#heardAt = systemClock.now();
    // Earlier notifications are lost.
    void this.#look();
    return true;
  }

  #hear(message: string): void {
    this.#heardAt = systemClock.now();
    this.wakeUps.deliver(message);
  }

  #onLost(connection: OwnConnection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#listening = false;
    void this.#listen();
  }
}
