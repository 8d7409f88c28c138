import { randomInt } from 'node:crypto';
import { errorText, isLockError, systemClock, type Timer } from '../../core/index.js';
import { type MemcachedErrorKind, MemcachedError } from './error.js';
import { NamedServer } from './named-server.js';
import type { VerifiedConnection, VerifiedConnectionOptions } from './verified-connection.js';

const MIN_RETRY_PAUSE_MS = 20;
const MAX_RETRY_PAUSE_MS = 500;

/**
 * Access to one server. After the first request, a lost connection is opened again in the background. The return of the
 * server is therefore noticed before the next request.
 */
export class MemcachedNode {
  /** Whether any connection to the server has passed `assertSameServerList`. */
  hasSameServerList = false;
  /** Last failure; `undefined` while the server is connected, and before the first request. */
  failure: Error | undefined;
  readonly #server: NamedServer;
  #connection: VerifiedConnection | undefined;
  #connectionPromise: Promise<VerifiedConnection> | undefined;
  #failureCount = 0;
  #retryAllowedAt = -Infinity;
  #retryTimer: Timer | undefined;
  #isClosed = false;

  constructor(
    readonly name: string,
    private readonly options: VerifiedConnectionOptions,
    private readonly onChange: () => void,
  ) {
    this.#server = new NamedServer(options);
  }

  /**
   * Failure because another process uses another list of servers; `undefined` if there is none. It concerns the keys of
   * all servers.
   */
  get serverListFailure(): Error | undefined {
    const { failure } = this;
    return isLockError(failure, 'LOCK_CONFIGURATION') && !this.#server.isSeveralServersError(failure)
      ? failure
      : undefined;
  }

  get advice(): string | undefined {
    return this.#connection?.advice;
  }

  /**
   * Repeats `work` once on a new connection if the server has not seen the request, or if the connection had been idle.
   * Networks drop idle connections silently.
   * @param onLostRequest called when a request got no reply, and may still arrive at the server
   * @throws MemcachedError, LockError
   */
  async run<T>(
    work: (connection: VerifiedConnection) => Promise<T>,
    onLostRequest = (): void => undefined,
  ): Promise<T> {
    const connection = this.#connection ?? (await this.#openUnlessPausing());
    const startedAt = systemClock.now();
    try {
      return await refreshClockAndRun(connection, work);
    } catch (error) {
      if (!(error instanceof MemcachedError)) throw this.#toErrorWithServerName(error);
      const isRequestLost = error.kind === 'unknown';
      if (isRequestLost) onLostRequest();
      const wasIdle = isRequestLost && connection.transport.lastReceivedAt <= startedAt - this.options.requestTimeoutMs;
      if (error.kind !== 'not-sent' && !wasIdle) throw this.#toErrorWithServerName(error);
      return await this.#runAgain(work, onLostRequest, isRequestLost);
    }
  }

  /** Connects, unless a connection exists or the last attempt has failed. Resolves even when the attempt fails. */
  async tryToConnect(): Promise<void> {
    if (!this.#connection && this.#failureCount === 0) await this.#openUnlessPausing().catch(() => undefined);
  }

  close(): void {
    this.#isClosed = true;
    this.#retryTimer?.cancel();
    this.#connection?.transport.end(closedError());
  }

  async #runAgain<T>(
    work: (connection: VerifiedConnection) => Promise<T>,
    onLostRequest: () => void,
    wasFirstRequestLost: boolean,
  ): Promise<T> {
    try {
      return await refreshClockAndRun(this.#connection ?? (await this.#openUnlessPausing()), work);
    } catch (error) {
      if (error instanceof MemcachedError && error.kind === 'unknown') onLostRequest();
      throw this.#toErrorWithServerName(error, wasFirstRequestLost ? 'unknown' : undefined);
    }
  }

  async #openUnlessPausing(): Promise<VerifiedConnection> {
    if (this.#isClosed) throw closedError();
    if (this.failure && systemClock.now() < this.#retryAllowedAt) throw this.failure;
    this.#connectionPromise ??= this.#connect().finally(() => (this.#connectionPromise = undefined));
    return this.#connectionPromise;
  }

  async #connect(): Promise<VerifiedConnection> {
    this.#retryTimer?.cancel();
    try {
      const connection = await this.#server.connect();
      connection.transport.onLost = (error) => this.#onLost(error);
      if (this.#isClosed) connection.transport.end(closedError());
      if (!connection.transport.isAlive)
        throw this.#isClosed ? closedError() : new MemcachedError('not-sent', 'lost at once');
      this.#connection = connection;
      this.hasSameServerList = true;
      this.#failureCount = 0;
      this.#report(undefined);
      return connection;
    } catch (error) {
      const failure = this.#toErrorWithServerName(error, 'not-sent');
      this.#failureCount += 1;
      const pauseMs =
        Math.min(MIN_RETRY_PAUSE_MS * 2 ** this.#failureCount, MAX_RETRY_PAUSE_MS) + randomInt(MIN_RETRY_PAUSE_MS);
      this.#retryAllowedAt = systemClock.now() + pauseMs;
      this.#scheduleRetry(pauseMs);
      this.#report(failure);
      throw failure;
    }
  }

  #onLost(error: MemcachedError): void {
    this.#connection = undefined;
    if (this.#isClosed) return;
    this.#retryAllowedAt = -Infinity;
    this.#scheduleRetry(MIN_RETRY_PAUSE_MS);
    this.#report(this.#toErrorWithServerName(error));
  }

  #scheduleRetry(delayMs: number): void {
    if (this.#isClosed) return;
    const retry = (): void => {
      this.#retryAllowedAt = -Infinity;
      this.#openUnlessPausing().catch(() => undefined);
    };
    this.#retryTimer = systemClock.schedule(delayMs, retry, { background: true });
  }

  #report(failure: Error | undefined): void {
    this.failure = failure;
    this.onChange();
  }

  #toErrorWithServerName(error: unknown, kind?: MemcachedErrorKind): Error {
    if (isLockError(error)) return error;
    const failure = error instanceof MemcachedError ? error : new MemcachedError('unknown', errorText(error));
    const hasServerName = failure.message.startsWith(`${this.name}: `);
    if (hasServerName && (kind ?? failure.kind) === failure.kind) return failure;
    const message = hasServerName ? failure.message : `${this.name}: ${failure.message}`;
    return new MemcachedError(kind ?? failure.kind, message, { cause: error });
  }
}

async function refreshClockAndRun<T>(
  connection: VerifiedConnection,
  work: (connection: VerifiedConnection) => Promise<T>,
): Promise<T> {
  await connection.refreshClock();
  return work(connection);
}

function closedError(): MemcachedError {
  return new MemcachedError('not-sent', 'the backend is closed');
}
