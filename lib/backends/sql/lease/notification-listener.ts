import { systemClock, retryUntilAnswered, type WakeUps } from '../../../core/index.js';
import { toErrorWithoutStatement } from '../connections/database-error.js';
import { IdleCheck } from '../connections/idle-check.js';
import { type ConnectionSettings, OwnConnection } from '../connections/own-connection.js';
import type { OwnConnections } from '../connections/own-connections.js';
import { TimeoutError } from '../connections/timeout.js';
import type { WaitingLine } from '../dialect/sql-dialect.js';
import { WaiterWatch } from './waiter-watch.js';

/** Milliseconds without an answer after which the listening connection is replaced. */
const MAX_SILENCE_MS = 1_000;

/** Maximum number of waiters in one statement. A statement for 10,000 waiters took longer than `MAX_SILENCE_MS`. */
const WAITERS_PER_STATEMENT = 1_000;

/** Milliseconds without a message after which a refused waiter triggers a probe of the connection. */
const MAX_TRUSTED_QUIET_MS = 3_000;

/** Listener for the messages that wake waiters, on a connection of its own. A lost connection is replaced. */
export class NotificationListener {
  readonly waiterWatch: WaiterWatch;
  readonly #settings: ConnectionSettings;
  readonly #idleCheck = new IdleCheck(() => this.#closeUnlessNeeded());
  #connection: OwnConnection | undefined;
  #isListening = false;
  /** Whether notifications can never arrive, as behind a pooler. */
  #cannotListen = false;
  #isOpening = false;
  #isConfirming = false;
  /**
   * Whether waiters sleep until a notification. The loss of the connection leaves them asleep. A failed attempt to
   * replace the connection wakes them.
   */
  #mayWaitersSleep = false;
  #isClosed = false;
  #lastHeardAt = 0;

  constructor(
    settings: ConnectionSettings,
    private readonly connections: OwnConnections,
    private readonly table: string,
    private readonly waitingLine: WaitingLine,
    private readonly wakeUps: WakeUps,
    private readonly isAnyKeyHeld: () => boolean,
  ) {
    this.waiterWatch = new WaiterWatch(() => void this.#confirmWaiters());
    this.#settings = { ...settings, requestTimeoutMs: Math.min(settings.requestTimeoutMs, MAX_SILENCE_MS) };
  }

  /** Returns whether notifications arrive. If not, starts to listen, and waiters must poll meanwhile. */
  ensureListening(): boolean {
    if (!this.#isListening && !this.#cannotListen) void this.#startListening();
    return this.#isListening;
  }

  probeIfQuiet(): void {
    if (systemClock.now() - this.#lastHeardAt > MAX_TRUSTED_QUIET_MS) void this.#confirmWaiters();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#idleCheck.cancel();
    await this.#connection?.close();
  }

  /** Tells the server that the waiters still wait, and wakes waiters that have missed a notification. */
  async #confirmWaiters(): Promise<void> {
    const { queuedKeyByOwner } = this.waiterWatch;
    const connection = this.#connection;
    if (queuedKeyByOwner.size === 0 || !connection || !this.#isListening || this.#isConfirming) return;
    this.#isConfirming = true;
    try {
      const waiters = [...queuedKeyByOwner];
      for (let start = 0; start < waiters.length; start += WAITERS_PER_STATEMENT) {
        const keyByOwner = new Map(waiters.slice(start, start + WAITERS_PER_STATEMENT));
        for (const message of await this.waitingLine.confirmWaiters(connection.query, this.table, keyByOwner))
          this.wakeUps.deliver(message);
        this.#lastHeardAt = systemClock.now();
      }
    } catch (error) {
      connection.destroy();
      if (error instanceof TimeoutError) {
        // The network may have dropped the idle connections, too.
        this.connections.health.reportReplacement('the connection that listens for releases');
        this.connections.closeIdleConnections();
      }
      this.#handleLoss(connection);
    } finally {
      this.#isConfirming = false;
    }
  }

  async #startListening(): Promise<void> {
    if (this.#isOpening) return;
    this.#isOpening = true;
    await retryUntilAnswered(
      () => this.#tryToListen(),
      () => !this.#isClosed && this.wakeUps.isAnyWaiting,
    );
    this.#isOpening = false;
    this.connections.health.setAdvice('listener', undefined);
  }

  /** Resolves to whether the attempts may end: the connection listens, or the server can never notify it. */
  async #tryToListen(): Promise<boolean> {
    const connection = new OwnConnection(this.#settings, () => this.#handleLoss(connection));
    this.#connection = connection;
    try {
      await connection.open();
      const { query, client } = connection;
      this.#cannotListen = !(await this.waitingLine.listen(query, client, this.table, (message) =>
        this.#deliverMessage(message),
      ));
    } catch (error) {
      connection.destroy();
      if (this.#mayWaitersSleep) this.wakeUps.wakeAll();
      this.#mayWaitersSleep = false;
      const advice = `nobody listens for releases, so those who wait ask again and again: ${toErrorWithoutStatement(error).message}`;
      this.connections.health.setAdvice('listener', advice);
      return false;
    }
    if (this.#cannotListen) {
      await connection.close();
      return true;
    }
    // The connection was lost while it began to listen.
    if (this.#connection !== connection) return false;
    this.#isListening = true;
    this.#idleCheck.schedule();
    this.#mayWaitersSleep = true;
    this.#lastHeardAt = systemClock.now();
    // Wakes waiters whose notifications were sent while no connection listened.
    void this.#confirmWaiters();
    return true;
  }

  /**
   * Closes the connection unless a caller of this process waits, or holds a lock that somebody may evict. Returns
   * whether the connection has to be checked again later.
   */
  #closeUnlessNeeded(): boolean {
    const connection = this.#connection;
    if (!connection || !this.#isListening) return false;
    if (this.wakeUps.isAnyWaiting || this.isAnyKeyHeld()) return true;
    this.#connection = undefined;
    this.#isListening = false;
    void connection.close();
    return false;
  }

  #deliverMessage(message: string): void {
    this.#lastHeardAt = systemClock.now();
    this.wakeUps.deliver(message);
  }

  #handleLoss(connection: OwnConnection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#isListening = false;
    void this.#startListening();
  }
}
