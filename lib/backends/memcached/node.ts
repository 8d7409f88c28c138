import { randomInt } from 'node:crypto';
import { errorText, isLockError, systemClock, type Timer } from '../../core/index.js';
import { type MemcachedErrorKind, MemcachedError } from './error.js';
import { VerifiedConnection, type VerifiedConnectionOptions } from './verified-connection.js';

const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 500;

/** One server. Connects when first asked, then keeps connecting: its return is noticed before anybody asks. */
export class MemcachedNode {
  /** Other processes have said once that they look for keys on the same servers. */
  agrees = false;
  /** The last one; `undefined` while it is connected, and before the first request. */
  failure: Error | undefined;
  #connection: VerifiedConnection | undefined;
  #opening: Promise<VerifiedConnection> | undefined;
  #failures = 0;
  #notBefore = -Infinity;
  #retry: Timer | undefined;
  #closed = false;

  constructor(
    readonly name: string,
    private readonly options: VerifiedConnectionOptions,
    private readonly onChange: () => void,
  ) {}

  get advice(): string | undefined {
    return this.#connection?.advice;
  }

  /**
   * Repeats `work` once on a new connection if the server has not seen it, or if the connection had been idle: networks
   * forget idle ones silently. `onDoubt` is called when a request was lost, which may still arrive.
   * @throws MemcachedError, LockError
   */
  async run<T>(work: (connection: VerifiedConnection) => Promise<T>, onDoubt = (): void => undefined): Promise<T> {
    const connection = this.#connection ?? (await this.#open());
    const since = systemClock.now();
    try {
      return await doOn(connection, work);
    } catch (error) {
      if (!(error instanceof MemcachedError)) throw this.#named(error);
      const isLost = error.kind === 'unknown';
      if (isLost) onDoubt();
      const onIdle = isLost && connection.transport.heardAt <= since - this.options.requestTimeoutMs;
      if (error.kind !== 'not-sent' && !onIdle) throw this.#named(error);
      return await this.#again(work, onDoubt, isLost);
    }
  }

  /** Resolves when the server has answered, or has failed to, for once. */
  async greet(): Promise<void> {
    if (!this.#connection && this.#failures === 0) await this.#open().catch(() => undefined);
  }

  close(): void {
    this.#closed = true;
    this.#retry?.cancel();
    this.#connection?.transport.end(closedError());
  }

  /** @param isLost whether a request of the first try was lost */
  async #again<T>(
    work: (connection: VerifiedConnection) => Promise<T>,
    onDoubt: () => void,
    isLost: boolean,
  ): Promise<T> {
    try {
      return await doOn(this.#connection ?? (await this.#open()), work);
    } catch (error) {
      if (error instanceof MemcachedError && error.kind === 'unknown') onDoubt();
      throw this.#named(error, isLost ? 'unknown' : undefined);
    }
  }

  async #open(): Promise<VerifiedConnection> {
    if (this.#closed) throw closedError();
    if (this.failure && systemClock.now() < this.#notBefore) throw this.failure;
    this.#opening ??= this.#connect().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async #connect(): Promise<VerifiedConnection> {
    this.#retry?.cancel();
    try {
      const connection = await VerifiedConnection.open(this.options);
      connection.transport.onLost = (error) => this.#onLost(error);
      if (this.#closed) connection.transport.end(closedError());
      if (!connection.transport.alive)
        throw this.#closed ? closedError() : new MemcachedError('not-sent', 'lost at once');
      this.#connection = connection;
      this.agrees = true;
      this.#failures = 0;
      this.#report(undefined);
      return connection;
    } catch (error) {
      const failure = this.#named(error, 'not-sent');
      this.#failures += 1;
      const pauseMs = Math.min(FIRST_RETRY_MS * 2 ** this.#failures, LONGEST_RETRY_MS) + randomInt(FIRST_RETRY_MS);
      this.#notBefore = systemClock.now() + pauseMs;
      this.#retryIn(pauseMs);
      this.#report(failure);
      throw failure;
    }
  }

  #onLost(error: MemcachedError): void {
    this.#connection = undefined;
    if (this.#closed) return;
    this.#report(this.#named(error));
    this.#notBefore = -Infinity;
    this.#retryIn(FIRST_RETRY_MS);
  }

  #retryIn(ms: number): void {
    if (this.#closed) return;
    const retry = (): void => {
      this.#notBefore = -Infinity;
      this.#open().catch(() => undefined);
    };
    this.#retry = systemClock.schedule(ms, retry, { background: true });
  }

  #report(failure: Error | undefined): void {
    this.failure = failure;
    this.onChange();
  }

  #named(error: unknown, kind?: MemcachedErrorKind): Error {
    if (isLockError(error)) return error;
    const failure = error instanceof MemcachedError ? error : new MemcachedError('unknown', errorText(error));
    const isNamed = failure.message.startsWith(`${this.name}: `);
    if (isNamed && (kind ?? failure.kind) === failure.kind) return failure;
    const message = isNamed ? failure.message : `${this.name}: ${failure.message}`;
    return new MemcachedError(kind ?? failure.kind, message, { cause: error });
  }
}

async function doOn<T>(
  connection: VerifiedConnection,
  work: (connection: VerifiedConnection) => Promise<T>,
): Promise<T> {
  await connection.prepare();
  return work(connection);
}

function closedError(): MemcachedError {
  return new MemcachedError('not-sent', 'the backend is closed');
}
