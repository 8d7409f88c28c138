import { randomInt } from 'node:crypto';
import { isLockError, pause, ReportedHealth, systemClock, isFulfilledWithin } from '../../core/index.js';
import { getSessionAdvice, getMaxSilenceMs } from './session-times.js';
import type { ZooKeeperConnectionSettings } from './transport/single-connection-client.js';
import { ZooKeeperConnection } from './transport/connection.js';
import type { ResolvedOptions } from './options.js';
import { ConnectionLostError, SessionExpiredError, SessionRefusedError } from './error.js';
import { ZooKeeperSession } from './session.js';
import { ZooKeeperLibrary } from './transport/wire.js';

type EnsembleClientOptions = Pick<
  ResolvedOptions,
  'servers' | 'sessionTtlMs' | 'requestTimeoutMs' | 'patienceMs' | 'auth'
>;

/** First time-out of a handshake: low, because a starting server may ignore one connection and accept the next. */
const MIN_HANDSHAKE_TIMEOUT_MS = 500;
const MIN_PAUSE_MS = 20;
const MAX_PAUSE_MS = 500;
/** Minimum duration of a connection that resets the count of failures, so that the next server is tried at once. */
const STABLE_CONNECTION_MS = 1_000;
const MAX_CLOSE_MS = 1_000;

export class EnsembleClient {
  readonly health = new ReportedHealth();
  /** Function for each waiting call of `getConnectedSession`, which settles that call. */
  readonly #waiters = new Set<(outcome: ZooKeeperSession | Error) => void>();
  #session: ZooKeeperSession | undefined;
  #connection: ZooKeeperConnection | undefined;
  /** Whether `#connection` was established. Stays true after the end of the connection until `#onDisconnected`. */
  #isEstablished = false;
  /**
   * Reason why no server accepts this process. Set when all servers have failed in turn, or after a final refusal.
   * Cleared when a connection is established.
   */
  failure: Error | undefined;
  #nextServerIndex: number;
  #library: Promise<ZooKeeperLibrary> | undefined;
  #handshakeTimeoutMs = MIN_HANDSHAKE_TIMEOUT_MS;
  #hasStarted = false;
  #closing: Promise<void> | undefined;
  #isClosed = false;

  constructor(private readonly options: EnsembleClientOptions) {
    this.#nextServerIndex = randomInt(options.servers.length);
  }

  /**
   * Waits, for `patienceMs` at most, until one server accepts this process, or all have refused it.
   * @throws ConnectionLostError, SessionRefusedError, LockConfigurationError when the client library is missing
   */
  async getConnectedSession(): Promise<ZooKeeperSession> {
    if (this.#closing) throw createClosedError();
    if (this.#session && this.#establishedConnection) return this.#session;
    if (!this.#hasStarted) void this.#keepConnected();
    return new Promise((resolve, reject) => {
      const settle = (outcome: ZooKeeperSession | Error): void => {
        timer.cancel();
        this.#waiters.delete(settle);
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      };
      const onTimeout = (): void =>
        settle(new ConnectionLostError(this.health.current.detail ?? 'no server has let us in yet'));
      const timer = systemClock.schedule(this.options.patienceMs, onTimeout);
      this.#waiters.add(settle);
    });
  }

  /**
   * Ends the session and its znodes on the server, if possible within a second. Otherwise the session expires by
   * itself.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  get #establishedConnection(): ZooKeeperConnection | undefined {
    return this.#isEstablished && this.#connection?.isAlive === true ? this.#connection : undefined;
  }

  async #close(): Promise<void> {
    this.#settleWaiters(createClosedError());
    const maxCloseMs = Math.min(this.options.sessionTtlMs / 3, MAX_CLOSE_MS);
    if (this.#session)
      await isFulfilledWithin(systemClock, maxCloseMs, this.#closeSession(systemClock.now() + maxCloseMs));
    this.#isClosed = true;
    this.#connection?.end(createClosedError());
    this.#session?.end();
  }

  async #closeSession(deadline: number): Promise<void> {
    while (this.#session && systemClock.now() < deadline) {
      try {
        if (this.#establishedConnection) return void (await this.#establishedConnection.send('closeSession', {}));
      } catch {
        // The connection has ended. `#keepConnected` may establish another one before the deadline.
      }
      await pause(systemClock, MIN_PAUSE_MS);
    }
  }

  /** Never rejects. Pauses after each round in which all servers refused the connection or ended it early. */
  async #keepConnected(): Promise<void> {
    this.#hasStarted = true;
    for (let consecutiveFailures = 0; !this.#isClosed; consecutiveFailures += 1) {
      const startedAt = systemClock.now();
      const error = await this.#connectAndAwaitEnd().catch(toError);
      const wasEstablished = this.#isEstablished;
      if (wasEstablished && systemClock.now() - startedAt >= STABLE_CONNECTION_MS) consecutiveFailures = 0;
      this.#onDisconnected(error);
      if (error instanceof SessionExpiredError || (consecutiveFailures + 1) % this.options.servers.length > 0) continue;
      if (!wasEstablished) this.#failWaiters(error);
      if (!this.#isClosed) await this.#pauseBetweenRounds(consecutiveFailures / this.options.servers.length);
    }
  }

  async #pauseBetweenRounds(failedRounds: number): Promise<void> {
    const maxMs = Math.min(MIN_PAUSE_MS * 2 ** Math.min(failedRounds, 10), MAX_PAUSE_MS);
    await pause(systemClock, maxMs / 2 + randomInt(Math.ceil(maxMs / 2)), { background: true });
  }

  /** Resolves to the reason why an established connection ended. Rejects when none was established. */
  async #connectAndAwaitEnd(): Promise<Error> {
    this.#library ??= ZooKeeperLibrary.load();
    const settings = this.#takeNextSettings(await this.#library);
    if (this.#isClosed) throw createClosedError();
    const connection = new ZooKeeperConnection(settings, this.#handshakeTimeoutMs);
    this.#connection = connection;
    await this.#awaitHandshake(connection);
    try {
      if (this.#session) await this.#assertSessionResumed(this.#session, connection);
      // `close` may have been called after the handshake, when there was no session to end.
      if (this.#isClosed) throw createClosedError();
    } catch (error) {
      connection.end(toError(error));
      throw error;
    }
    this.#onConnected(connection);
    return connection.ended;
  }

  /** @throws SessionExpiredError, ConnectionLostError */
  async #assertSessionResumed(session: ZooKeeperSession, connection: ZooKeeperConnection): Promise<void> {
    // A server may also answer with a new session, to which the znodes of this process do not belong.
    if (!connection.identity.id.equals(session.identity.id)) throw new SessionExpiredError();
    // A server with lower limits has shortened the session, so that leases would be trusted for too long.
    if (connection.negotiatedTtlMs < session.ttlMs) {
      await this.#endShortenedSession(session, connection);
      throw new SessionExpiredError();
    }
    // This server may lag behind the server of the previous connection.
    await connection.send('sync', { path: '/' });
  }

  async #endShortenedSession(session: ZooKeeperSession, connection: ZooKeeperConnection): Promise<void> {
    // Holders are told first, because the server grants their keys to others as soon as the session is closed.
    session.end();
    // Ignores a failure, because the server then ends the session by itself after the shorter time-out.
    await connection.send('closeSession', {}).catch(() => undefined);
  }

  async #awaitHandshake(connection: ZooKeeperConnection): Promise<void> {
    const { sessionTtlMs, requestTimeoutMs } = this.options;
    const maxMs = Math.max(getMaxSilenceMs(sessionTtlMs, requestTimeoutMs), MIN_HANDSHAKE_TIMEOUT_MS);
    try {
      await connection.ready;
    } finally {
      const wasSilent = systemClock.now() - connection.openedAt >= this.#handshakeTimeoutMs;
      this.#handshakeTimeoutMs = wasSilent ? Math.min(2 * this.#handshakeTimeoutMs, maxMs) : MIN_HANDSHAKE_TIMEOUT_MS;
    }
  }

  #takeNextSettings(library: ZooKeeperLibrary): ZooKeeperConnectionSettings {
    const { servers, sessionTtlMs, requestTimeoutMs, auth } = this.options;
    const server = servers[this.#nextServerIndex % servers.length];
    if (!server) throw new Error('there is no server');
    this.#nextServerIndex += 1;
    return { library, server, sessionTtlMs, requestTimeoutMs, identity: this.#session?.identity, auth };
  }

  #onConnected(connection: ZooKeeperConnection): void {
    this.#isEstablished = true;
    if (this.#session) this.#session.resume(connection);
    else this.#session = new ZooKeeperSession(connection, systemClock);
    this.health.setAdvice('session', getSessionAdvice(connection.negotiatedTtlMs, this.options.sessionTtlMs));
    this.failure = undefined;
    this.health.report('up');
    this.#settleWaiters(this.#session);
  }

  #onDisconnected(error: Error): void {
    this.#isEstablished = false;
    this.health.setAdvice('session', undefined);
    if (error instanceof SessionExpiredError) {
      this.#session?.end();
      this.#session = undefined;
    }
    if (error instanceof SessionRefusedError || isLockError(error)) this.#failWaiters(error);
    if (!this.#closing) this.health.report('down', error.message);
  }

  #failWaiters(error: Error): void {
    this.failure = error;
    this.#settleWaiters(error);
  }

  #settleWaiters(outcome: ZooKeeperSession | Error): void {
    for (const settle of this.#waiters) settle(outcome);
  }
}

function createClosedError(): Error {
  return new SessionRefusedError('the backend is closed');
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
