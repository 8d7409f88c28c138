import { randomInt } from 'node:crypto';
import {
  type Clock,
  isLockError,
  LockConfigurationError,
  NotSentError,
  pause,
  scheduleReplyTimeout,
  type Timer,
} from '../../../core/index.js';
import { isUnknownDatabaseError, toLoggableError } from '../error.js';
import { addClientListeners } from './client-events.js';
import type { ClientLifecycle } from './client-lifecycle.js';
import { type ClientState, createClosedError } from './client-state.js';
import { FormerConnection } from './former-connection.js';
import { type ClientSource, isConnectedTo, type RedisClient, type RedisCommand } from './redis-client.js';

const MAX_HANDSHAKE_MS = 5_000;
/** Minimum `timeoutMs` for tests of idle connections: half of it must be enough to make another connection. */
const MIN_TIMEOUT_TO_TEST_MS = 500;

/** Lifecycle of clients that the backend makes, replaces and disconnects. */
export class OwnClientLifecycle implements ClientLifecycle {
  /** Private, because printing a service must not print the password that the client has. */
  #client: RedisClient | undefined;
  #clientPromise: Promise<RedisClient> | undefined;
  #handshakeTimer: Timer | undefined;
  #hasLoadedPackage = false;
  readonly #formerConnection: FormerConnection;
  /** Error with which requests fail at once, while the server says that it does not have the configured database. */
  #databaseError: LockConfigurationError | undefined;
  #lastError: Error | undefined;
  #stopWatchingMaster: (() => void) | undefined;
  #removeListeners: () => void = () => undefined;

  constructor(
    private readonly source: ClientSource,
    private readonly state: ClientState,
    private readonly timeoutMs: number,
    private readonly clock: Clock,
  ) {
    this.#formerConnection = new FormerConnection(clock, timeoutMs / 2);
  }

  get client(): RedisClient | undefined {
    return this.#client;
  }

  async startConnecting(): Promise<void> {
    if (!this.state.isClosed) await this.#connect();
  }

  ensureConnecting(): Error | undefined {
    if (this.state.isClosed) return createClosedError();
    if (this.#databaseError) return this.#databaseError;
    this.#connect().catch(() => undefined);
    return undefined;
  }

  /** Waits for half the time-out only: the other half remains for another connection. */
  testIdleClient(): void {
    const client = this.#client;
    if (!client || this.timeoutMs < MIN_TIMEOUT_TO_TEST_MS) return;
    this.state.becomeUnusable();
    const onNoReply = (): void => {
      if (client === this.#client && !this.state.isClosed)
        this.#replaceClient('the connection has died while it was idle');
    };
    const replyTimer = scheduleReplyTimeout(this.clock, this.timeoutMs / 2, onNoReply, { background: true });
    const onPingSettled = (): void => {
      replyTimer.cancel();
      if (client === this.#client && this.state.isReady) this.state.becomeUsable();
    };
    client.call('PING').then(onPingSettled, onPingSettled);
  }

  onSilence(error: Error): void {
    this.#replaceClient(error.message);
  }

  onConnectTimeout(error: Error): void {
    if (this.state.isReady) this.#replaceClient(error.message);
    else this.state.health.report('down', error.message);
  }

  onFirstSuccess(sendCommand: (...command: RedisCommand) => Promise<unknown>): void {
    if (this.#client) void this.#formerConnection.remember(this.#client, sendCommand);
  }

  createNoAnswerError(): Error {
    const reason = this.#lastError && !this.state.isReady ? `: ${this.#lastError.message}` : '';
    return new Error(`no answer within ${this.timeoutMs} ms${reason}`);
  }

  async close(): Promise<void> {
    if (this.state.isClosed) return;
    this.#stopWatchingMaster?.();
    this.#handshakeTimer?.cancel();
    this.state.close();
    const client = await this.#clientPromise?.catch(() => undefined);
    if (client) this.#disconnect(client);
  }

  #connect(delayMs = 0): Promise<RedisClient> {
    if (this.#clientPromise) return this.#clientPromise;
    const clientPromise = this.#makeClient(delayMs);
    this.#clientPromise = clientPromise;
    clientPromise.catch((error: unknown) => {
      if (this.#clientPromise === clientPromise) this.#clientPromise = undefined;
      this.state.becomeUnusable(isLockError(error) ? error : new NotSentError(toLoggableError(error).message));
    });
    return clientPromise;
  }

  async #makeClient(delayMs: number): Promise<RedisClient> {
    if (delayMs > 0) await pause(this.clock, delayMs, { background: true });
    if (this.state.isClosed) throw createClosedError();
    const client = await this.source.makeClient();
    if (this.state.isClosed) throw createClosedError();
    // Loading the client package may take long. The time-outs of the waiting requests begin again by `becomeUnusable`.
    if (!this.#hasLoadedPackage) this.state.becomeUnusable();
    this.#hasLoadedPackage = true;
    this.#stopWatchingMaster ??= this.source.watchMaster?.(this.state.health, (address) => {
      if (!address || !this.#client || !isConnectedTo(this.#client, address))
        this.#replaceClient('another server has been made master');
    });
    this.#useClient(client);
    // The client also emits each failure as an event.
    client.connect().catch(() => undefined);
    return client;
  }

  /** Replaces the client after a random delay, because other processes may reconnect, too. Commands under way fail. */
  #replaceClient(reason: string): void {
    this.state.health.report('down', reason);
    const client = this.#client;
    if (!client || this.state.isClosed) return;
    this.#client = undefined;
    this.state.becomeReplaced();
    this.#disconnect(client);
    this.#clientPromise = undefined;
    this.#connect(randomInt(Math.ceil(this.timeoutMs / 10) + 1)).catch(() => undefined);
  }

  #useClient(client: RedisClient): void {
    this.#client = client;
    // The handshake includes the request for a login, which precedes the event 'connecting'.
    this.#startHandshakeTimer();
    this.#removeListeners = addClientListeners(client, this.#clientListeners);
    client.on('error', (error) => this.#onError(error, client.options?.db));
    if (client.status === 'ready') this.#onReady();
  }

  /** Disconnects the client, but keeps its error listener: a closing socket may still fail. */
  #disconnect(client: RedisClient): void {
    this.#removeListeners();
    client.disconnect();
  }

  /** Starts the timer that replaces the client if no connection is ready in time, even while no request waits. */
  readonly #startHandshakeTimer = (): void => {
    this.#handshakeTimer?.cancel();
    if (this.state.isClosed) return;
    const onTimeout = (): void => this.#replaceClient(`no connection within ${MAX_HANDSHAKE_MS} ms`);
    this.#handshakeTimer = scheduleReplyTimeout(this.clock, MAX_HANDSHAKE_MS, onTimeout, { background: true });
  };

  readonly #onReady = (): void => {
    this.#handshakeTimer?.cancel();
    this.state.becomeReady();
    this.#lastError = undefined;
    this.#databaseError = undefined;
    const client = this.#client;
    if (client && this.#formerConnection.isKnown) void this.#endFormerConnection(client);
    else this.#becomeUsable();
  };

  async #endFormerConnection(client: RedisClient): Promise<void> {
    await this.#formerConnection.end(client);
    if (client === this.#client && this.state.isReady && !this.state.isClosed) this.#becomeUsable();
  }

  #becomeUsable(): void {
    this.state.health.report('up');
    this.state.becomeUsable();
  }

  /** Fails the waiting requests only if the database is missing: other errors may pass. */
  #onError(error: unknown, db = 0): void {
    this.#lastError = toLoggableError(error);
    if (!isUnknownDatabaseError(this.#lastError)) return;
    const { message } = this.#lastError;
    this.#databaseError = new LockConfigurationError(`db ${db} is no database of this server: ${message}`, 'db');
    this.state.health.report('down', this.#databaseError.message);
    this.state.becomeUnusable(this.#databaseError);
  }

  readonly #onClose = (): void => {
    this.#startHandshakeTimer();
    this.state.becomeDisconnected(this.#lastError?.message ?? 'the connection is lost');
  };

  readonly #clientListeners = {
    connecting: this.#startHandshakeTimer,
    ready: this.#onReady,
    close: this.#onClose,
    end: this.#onClose,
  };
}
