import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { errorText, type Given, given, replyTimeout, systemClock } from '../../../core/index.js';
import { MemcachedError } from '../error.js';
import { type Commands, Pipeline } from './pipeline.js';

export interface MemcachedConnectionOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: Given<ConnectionOptions> | undefined;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
}

/** Sooner than networks forget a connection on which nothing moves. */
const KEEP_ALIVE_MS = 10_000;

/**
 * One connection. An answer that is overdue, or is none, ends it, so that replies never mix: what was under way then
 * has an unknown outcome. It is reset, not closed, which takes back what is still on its way to the server.
 */
export class MemcachedConnection {
  /** Called once, when it can no longer be used. */
  onLost: (error: MemcachedError) => void = () => undefined;
  readonly #pipeline = new Pipeline();
  #outbox: (() => string)[] = [];
  #lost: MemcachedError | undefined;
  #watched = false;
  #heardAt: number;

  private constructor(
    private readonly socket: Socket,
    private readonly options: MemcachedConnectionOptions,
  ) {
    this.#heardAt = systemClock.now();
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('error', (error) => this.#lose(new MemcachedError('unknown', errorText(error))));
    socket.on('close', () => this.#lose(new MemcachedError('unknown', 'the server closed the connection')));
  }

  /** @throws MemcachedError */
  static async open(options: MemcachedConnectionOptions): Promise<MemcachedConnection> {
    const { host, port, connectTimeoutMs } = options;
    const tls = options.tls && (await given('tls', options.tls, connectTimeoutMs));
    // An address is no name that a certificate could be chosen by.
    const name = isIP(host) === 0 ? { servername: host } : {};
    const socket = tls ? connectTls({ host, port, ...name, ...tls }) : connectTcp({ host, port });
    return new Promise((resolve, reject) => {
      const fail = (why: string): void => {
        timer.cancel();
        // It may go on to complain.
        socket.on('error', () => undefined).destroy();
        reject(new MemcachedError('not-sent', why));
      };
      const timer = systemClock.schedule(connectTimeoutMs, () => fail(`no connection within ${connectTimeoutMs} ms`));
      const onError = (error: Error): void => fail(errorText(error));
      socket.once('error', onError);
      socket.once(tls ? 'secureConnect' : 'connect', () => {
        timer.cancel();
        socket.off('error', onError);
        resolve(new MemcachedConnection(socket, options));
      });
    });
  }

  get alive(): boolean {
    return this.#lost === undefined;
  }

  /** When the server has last sent something, or has accepted the connection. */
  get heardAt(): number {
    return this.#heardAt;
  }

  /** One round trip, in one write with all others of this turn. @throws MemcachedError */
  exchange<Results extends readonly unknown[]>(...commands: Commands<Results>): Promise<Results> {
    return new Promise((resolve, reject) => {
      if (this.#outbox.length === 0) queueMicrotask(() => this.#flush());
      this.#outbox.push(() => {
        if (this.#lost) {
          reject(new MemcachedError('not-sent', this.#lost.message));
          return '';
        }
        this.#pipeline.expect(commands, systemClock.now()).then(resolve, reject);
        return commands.map(({ text }) => text).join('');
      });
    });
  }

  /** Nothing is sent any more, and what is under way fails with `error`. */
  end(error: MemcachedError): void {
    if (this.#pipeline.oldest === undefined) this.socket.destroy();
    this.#lose(error);
  }

  #flush(): void {
    const outbox = this.#outbox;
    this.#outbox = [];
    const text = outbox.map((send) => send()).join('');
    if (text === '') return;
    this.socket.write(text);
    this.#watch(this.options.requestTimeoutMs);
  }

  #onData(chunk: Buffer): void {
    if (this.#lost) return;
    this.#heardAt = systemClock.now();
    try {
      this.#pipeline.receive(chunk);
    } catch (error) {
      this.#lose(error instanceof MemcachedError ? error : new MemcachedError('protocol', String(error)));
    }
  }

  /** One timer for all that is under way: each command waits for as long as the others do. */
  #watch(delayMs: number): void {
    if (this.#watched) return;
    this.#watched = true;
    replyTimeout(systemClock, delayMs, () => this.#onTimer(), { background: true });
  }

  #onTimer(): void {
    this.#watched = false;
    const { oldest } = this.#pipeline;
    if (oldest === undefined || this.#lost) return;
    const { requestTimeoutMs } = this.options;
    const leftMs = oldest + requestTimeoutMs - systemClock.now();
    if (leftMs > 0) this.#watch(leftMs);
    else this.#lose(new MemcachedError('unknown', `no answer within ${requestTimeoutMs} ms`));
  }

  #lose(error: MemcachedError): void {
    if (this.#lost) return;
    this.#lost = error;
    // Only TCP can be reset.
    if (this.options.tls) this.socket.destroy();
    else if (!this.socket.destroyed) this.socket.resetAndDestroy();
    this.#pipeline.fail(error);
    this.onLost(error);
  }
}
