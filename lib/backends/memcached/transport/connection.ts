import { once } from 'node:events';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { errorText, given, ReplyTimeouts, systemClock, within } from '../../../core/index.js';
import { MemcachedError } from '../error.js';
import type { ResolvedMemcachedOptions, ServerAddress } from '../options.js';
import { type Commands, Pipeline } from './pipeline.js';

export type MemcachedConnectionOptions = Pick<ServerAddress, 'host' | 'port'> &
  Pick<ResolvedMemcachedOptions, 'tls' | 'connectTimeoutMs' | 'requestTimeoutMs'>;

/** Networks forget a connection on which nothing moves for longer. */
const KEEP_ALIVE_MS = 10_000;

/**
 * One connection. It ends with an answer that is overdue or makes no sense, so that replies never mix. What was under
 * way then has an unknown outcome. A reset, unlike a close, takes back what is still on its way to the server.
 */
export class MemcachedConnection {
  /** Called once, when it can no longer be used. */
  onLost: (error: MemcachedError) => void = () => undefined;
  readonly #pipeline = new Pipeline();
  readonly #timeouts: ReplyTimeouts;
  #outbox: (() => string)[] = [];
  #lost: MemcachedError | undefined;
  /** When the server has last sent something, or has accepted the connection. */
  heardAt = systemClock.now();

  private constructor(
    private readonly socket: Socket,
    private readonly options: MemcachedConnectionOptions,
  ) {
    const { requestTimeoutMs } = options;
    const nextDueAt = (): number => (this.#pipeline.oldest ?? Infinity) + requestTimeoutMs;
    const onOverdue = (): void => this.#lose(new MemcachedError('unknown', `no answer within ${requestTimeoutMs} ms`));
    this.#timeouts = new ReplyTimeouts(systemClock, requestTimeoutMs, nextDueAt, onOverdue);
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
    // A certificate is chosen by a name, not by an address.
    const name = isIP(host) === 0 ? { servername: host } : {};
    const socket = tls ? connectTls({ host, port, ...name, ...tls }) : connectTcp({ host, port });
    // It may report errors also when nobody waits for it any more.
    socket.on('error', () => undefined);
    try {
      const inTime = await within(systemClock, connectTimeoutMs, once(socket, tls ? 'secureConnect' : 'connect'));
      if (!inTime) throw new Error(`no connection within ${connectTimeoutMs} ms`);
      return new MemcachedConnection(socket, options);
    } catch (error) {
      socket.destroy();
      throw new MemcachedError('not-sent', errorText(error));
    }
  }

  get alive(): boolean {
    return this.#lost === undefined;
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
    this.#timeouts.start();
  }

  #onData(chunk: Buffer): void {
    if (this.#lost) return;
    this.heardAt = systemClock.now();
    try {
      this.#pipeline.receive(chunk);
    } catch (error) {
      this.#lose(error instanceof MemcachedError ? error : new MemcachedError('protocol', String(error)));
    }
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
