import { connect, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { LockConfigurationError } from '../../../core/index.js';

export interface Address {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly socketPath?: string | undefined;
}

/** Where the application gives a function that makes streams. */
export interface StreamSetting {
  readonly name: string;
  readonly option: 'dataSource' | 'connection';
}

/** The one among the options of a driver. */
export const STREAM_OF_CONNECTION: StreamSetting = { name: 'stream of connection', option: 'connection' };

/** The pause before TCP keep-alive probes. Routers forget connections later. */
const KEEP_ALIVE_MS = 10_000;

/** The sockets of one connection. Ends them whatever the driver does: it may wait for a frozen server for ever. */
export class Sockets {
  readonly #open = new Set<Duplex>();

  /** @param onClose called for each socket that closes, whoever closed it */
  constructor(private readonly onClose: () => void) {}

  /** One that the driver connects itself. */
  create(): Socket {
    return this.#watch(new Socket());
  }

  connect({ socketPath, host = 'localhost', port = 0 }: Address): Socket {
    const socket = socketPath === undefined ? connect({ host, port }) : connect({ path: socketPath });
    return this.#watch(socket.setNoDelay(true));
  }

  /**
   * Watches a stream that the application's own `stream` made, such as a tunnel or a cloud connector.
   * @param setting the name of that function, and the option that it belongs to
   * @throws LockConfigurationError when that is no stream
   */
  adopt(stream: unknown, setting: StreamSetting): Duplex {
    if (isStream(stream)) return this.#watch(stream);
    throw new LockConfigurationError(
      `${setting.name} must be a function that returns a new stream each time; it returned ${typeof stream}`,
      setting.option,
    );
  }

  /**
   * Called once the connection is open.
   * @throws LockConfigurationError when the driver made a socket of its own. Nobody would notice its end, with which
   *   the server gives the locks of the connection away
   */
  assertUsed(strategy: 'row' | 'session'): void {
    if (this.#open.size > 0) return;
    throw new LockConfigurationError(
      `strategy '${strategy}' must notice the end of its connection, and the driver makes sockets of its own, ` +
        "as pg-native and mysql do: use pg or mysql2, or strategy 'lease'",
      'strategy',
    );
  }

  destroy(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #watch<T extends Duplex>(socket: T): T {
    this.#open.add(socket);
    if (socket instanceof Socket) socket.setKeepAlive(true, KEEP_ALIVE_MS);
    return socket.once('close', () => {
      this.#open.delete(socket);
      this.onClose();
    });
  }
}

/** The `stream` among the driver's own options, where it makes the connections. */
export function streamIn(extra: unknown): ((config: unknown) => unknown) | undefined {
  const given: unknown = typeof extra === 'object' && extra ? Reflect.get(extra, 'stream') : undefined;
  return typeof given === 'function' ? (config) => Reflect.apply(given, extra, [config]) : undefined;
}

/** A number that a driver keeps about its connection, as text; `undefined` where it keeps none. */
export function idIn(client: unknown, property: string): string | undefined {
  const id: unknown = typeof client === 'object' && client ? Reflect.get(client, property) : undefined;
  return typeof id === 'number' ? String(id) : undefined;
}

function isStream(value: unknown): value is Duplex {
  return typeof value === 'object' && value !== null && 'destroy' in value && 'once' in value && 'write' in value;
}
