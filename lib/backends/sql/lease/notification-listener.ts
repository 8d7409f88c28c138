import { systemClock, retryUntilAnswered, type WakeUps } from '../../../core/index.js';
import { toErrorWithoutStatement } from '../connections/database-error.js';
import { type ConnectionSettings, OwnConnection } from '../connections/own-connection.js';
import type { OwnConnections } from '../connections/own-connections.js';
import { TimeoutError } from '../connections/timeout.js';
import type { WaitingLine } from '../dialect/sql-dialect.js';
import { WaiterWatch } from './waiter-watch.js';

/** Maximum milliseconds to wait for an answer on the listening connection, which is then replaced. */
const MAX_SILENCE_MS = 1_000;

/** Number of waiters that one statement confirms. A statement for 10,000 waiters took longer than `MAX_SILENCE_MS`. */
const CONFIRMED_PER_STATEMENT = 1_000;

/** Maximum milliseconds without a message after which a waiter relies on the connection without a probe. */
const MAX_TRUSTED_QUIET_MS = 3_000;

/** The connection on which the server notifies waiters that they should ask. Opened when the first caller has to wait. */
export class NotificationListener {
  /** The waiters of this process. */
  readonly waiterWatch: WaiterWatch;
  readonly #settings: ConnectionSettings;
  #connection: OwnConnection | undefined;
  #isListening = false;
  /** Whether no notification can ever arrive, as behind a pooler. */
  #canNeverHear = false;
  #isOpening = false;
  #isConfirming = false;
  /**
   * Whether waiters may sleep until a notification. The loss of a connection does not change this. A failed attempt to
   * replace the connection wakes the waiters.
   */
  #mayWaitersSleep = false;
  #isClosed = false;
  #lastHeardAt = 0;

  constructor(
    settings: ConnectionSettings,
    private readonly connections: OwnConnections,
    private readonly table: string,
    private readonly line: WaitingLine,
    private readonly wakeUps: WakeUps,
  ) {
    this.waiterWatch = new WaiterWatch(() => void this.#confirmWaiters());
    this.#settings = { ...settings, requestTimeoutMs: Math.min(settings.requestTimeoutMs, MAX_SILENCE_MS) };
  }

  /** Returns whether notifications arrive. Starts to listen otherwise; until then, waiters must poll. */
  ensureListening(): boolean {
    if (!this.#isListening && !this.#canNeverHear) void this.#openUntilListening();
    return this.#isListening;
  }

  /** Probes a connection that was quiet for long, because a waiter begins to rely on its notifications. */
  probeIfQuiet(): void {
    if (systemClock.now() - this.#lastHeardAt > MAX_TRUSTED_QUIET_MS) void this.#confirmWaiters();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#connection?.close();
  }

  /**
   * Tells the server that the waiters still wait, and wakes waiters that have missed a notification. A connection without an
   * answer is replaced, because the network may have forgotten it.
   */
  async #confirmWaiters(): Promise<void> {
    const { keysInLine } = this.waiterWatch;
    const connection = this.#connection;
    if (keysInLine.size === 0 || !connection || !this.#isListening || this.#isConfirming) return;
    this.#isConfirming = true;
    try {
      const waiters = [...keysInLine];
      for (let start = 0; start < waiters.length; start += CONFIRMED_PER_STATEMENT) {
        const keysOfStatement = new Map(waiters.slice(start, start + CONFIRMED_PER_STATEMENT));
        for (const message of await this.line.confirmWaiters(connection.query, this.table, keysOfStatement))
          this.wakeUps.deliver(message);
        this.#lastHeardAt = systemClock.now();
      }
    } catch (error) {
      connection.destroy();
      if (error instanceof TimeoutError) {
        // The network may have forgotten the other connections, too.
        this.connections.health.reportReplacement('the connection that listens for releases');
        this.connections.closeIdleConnections();
      }
      this.#handleLoss(connection);
    } finally {
      this.#isConfirming = false;
    }
  }

  async #openUntilListening(): Promise<void> {
    if (this.#isOpening) return;
    this.#isOpening = true;
    await retryUntilAnswered(
      () => this.#open(),
      () => !this.#isClosed && this.wakeUps.isAnyWaiting,
    );
    this.#isOpening = false;
    this.connections.health.setAdvice('listener', undefined);
  }

  async #open(): Promise<boolean> {
    const connection = new OwnConnection(this.#settings, () => this.#handleLoss(connection));
    this.#connection = connection;
    try {
      await connection.open();
      const { query, client } = connection;
      this.#canNeverHear = !(await this.line.listen(query, client, this.table, (message) =>
        this.#deliverMessage(message),
      ));
    } catch (error) {
      connection.destroy();
      // Waiters are woken, and poll until the next connection listens.
      if (this.#mayWaitersSleep) this.wakeUps.wakeAll();
      this.#mayWaitersSleep = false;
      const advice = `nobody listens for releases, so those who wait ask again and again: ${toErrorWithoutStatement(error).message}`;
      this.connections.health.setAdvice('listener', advice);
      return false;
    }
    if (this.#canNeverHear) {
      await connection.close();
      return true;
    }
    if (this.#connection !== connection) return false;
    this.#isListening = true;
    this.#mayWaitersSleep = true;
    this.#lastHeardAt = systemClock.now();
    // Earlier notifications are lost.
    void this.#confirmWaiters();
    return true;
  }

  #deliverMessage(message: string): void {
    this.#lastHeardAt = systemClock.now();
    this.wakeUps.deliver(message);
  }

  #handleLoss(connection: OwnConnection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#isListening = false;
    void this.#openUntilListening();
  }
}
