import { once } from 'node:events';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { errorText, getPresentValue, ReplyTimeouts, systemClock, isFulfilledWithin } from '../../../core/index.js';
import { MemcachedError } from '../error.js';
import type { ResolvedMemcachedOptions, ServerAddress } from '../options.js';
import { type Commands, Pipeline } from './pipeline.js';

export type MemcachedConnectionOptions = Pick<ServerAddress, 'host' | 'port'> &
  Pick<ResolvedMemcachedOptions, 'tls' | 'connectTimeoutMs' | 'requestTimeoutMs'>;

/** Idle milliseconds before a TCP keep-alive probe. Routers forget idle connections only after a longer time. */
const KEEP_ALIVE_DELAY_MS = 10_000;

/**
 * Connection that ends as soon as a reply is overdue or does not fit its request, so that replies are never mixed up. A
 * connection without TLS is reset. Unlike a close, a reset also discards requests that are still on their way to the
 * server.
 */
export class MemcachedConnection {
  onLost: (error: MemcachedError) => void = () => undefined;
  readonly #pipeline = new Pipeline();
  readonly #replyTimeouts: ReplyTimeouts;
  /**
   * Functions, one for each unsent request, that return the text to send and register the request for its replies. They
   * return an empty text after a failure.
   */
  #unsentRequestTexts: (() => string)[] = [];
  #lostError: MemcachedError | undefined;
  /** Time at which the server last sent something, or accepted the connection. */
  lastReceivedAt = systemClock.now();

  private constructor(
    private readonly socket: Socket,
    private readonly options: MemcachedConnectionOptions,
  ) {
    const { requestTimeoutMs } = options;
    const getNextDueAt = (): number => (this.#pipeline.oldestSentAt ?? Infinity) + requestTimeoutMs;
    const onOverdue = (): void => this.#fail(new MemcachedError('unknown', `no answer within ${requestTimeoutMs} ms`));
    this.#replyTimeouts = new ReplyTimeouts(systemClock, requestTimeoutMs, getNextDueAt, onOverdue);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS);
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('error', (error) => this.#fail(new MemcachedError('unknown', errorText(error))));
    socket.on('close', () => this.#fail(new MemcachedError('unknown', 'the server closed the connection')));
  }

  /** @throws MemcachedError */
  static async open(options: MemcachedConnectionOptions): Promise<MemcachedConnection> {
    const { host, port, connectTimeoutMs } = options;
    const tls = options.tls && (await getPresentValue('tls', options.tls, connectTimeoutMs));
    // Server name indication allows host names only, not addresses.
    const tlsOptions = isIP(host) === 0 ? { servername: host } : {};
    const socket = tls ? connectTls({ host, port, ...tlsOptions, ...tls }) : connectTcp({ host, port });
    // An error without a listener would end the process, even after the attempt to connect has ended.
    socket.on('error', () => undefined);
    try {
      const isConnected = await isFulfilledWithin(
        systemClock,
        connectTimeoutMs,
        once(socket, tls ? 'secureConnect' : 'connect'),
      );
      if (!isConnected) throw new Error(`no connection within ${connectTimeoutMs} ms`);
      return new MemcachedConnection(socket, options);
    } catch (error) {
      socket.destroy();
      throw new MemcachedError('not-sent', errorText(error));
    }
  }

  get isAlive(): boolean {
    return this.#lostError === undefined;
  }

  /** Sends the commands, in one write with all others of this event loop iteration. @throws MemcachedError */
  exchange<Results extends readonly unknown[]>(...commands: Commands<Results>): Promise<Results> {
    return new Promise((resolve, reject) => {
      if (this.#unsentRequestTexts.length === 0) queueMicrotask(() => this.#flush());
      this.#unsentRequestTexts.push(() => {
        if (this.#lostError) {
          reject(new MemcachedError('not-sent', this.#lostError.message));
          return '';
        }
        this.#pipeline.expectReplies(commands, systemClock.now()).then(resolve, reject);
        return commands.map(({ text }) => text).join('');
      });
    });
  }

  /** Ends the connection, by a reset only if requests are under way. These requests fail with `error`. */
  end(error: MemcachedError): void {
    if (this.#pipeline.oldestSentAt === undefined) this.socket.destroy();
    this.#fail(error);
  }

  #flush(): void {
    const requestTexts = this.#unsentRequestTexts;
    this.#unsentRequestTexts = [];
    const text = requestTexts.map((registerAndGetText) => registerAndGetText()).join('');
    if (text === '') return;
    this.socket.write(text);
    this.#replyTimeouts.start();
  }

  #onData(chunk: Buffer): void {
    if (this.#lostError) return;
    this.lastReceivedAt = systemClock.now();
    try {
      this.#pipeline.receive(chunk);
    } catch (error) {
      this.#fail(error instanceof MemcachedError ? error : new MemcachedError('protocol', String(error)));
    }
  }

  #fail(error: MemcachedError): void {
    if (this.#lostError) return;
    this.#lostError = error;
    // Plain TCP can be reset, TLS cannot. While our end is under way, a reset would fail, and Node would never close the
    // handle, nor let the process exit.
    if (this.options.tls || this.socket.writableEnded) this.socket.destroy();
    else if (!this.socket.destroyed) this.socket.resetAndDestroy();
    this.#pipeline.fail(error);
    this.onLost(error);
  }
}
