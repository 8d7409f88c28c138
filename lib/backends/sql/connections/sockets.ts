import { connect, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { LockConfigurationError } from '../../../core/index.js';

export interface Address {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly socketPath?: string | undefined;
}

/** Setting by which an application creates the streams of its driver, as error messages name it. */
export interface StreamSetting {
  readonly name: string;
  readonly option: 'dataSource' | 'connection';
}

export const CONNECTION_STREAM_SETTING: StreamSetting = { name: 'stream of connection', option: 'connection' };

/** Idle milliseconds before TCP keep-alive probes. Routers forget idle connections only after a longer time. */
const KEEP_ALIVE_DELAY_MS = 10_000;

/**
 * Sockets of one connection, which can be destroyed even while the driver waits for a frozen server. The driver creates
 * one for each address that it tries, and uses the newest.
 */
export class Sockets {
  readonly #openSockets = new Set<Duplex>();
  #newestSocket: Duplex | undefined;
  #isDestroyed = false;
  #onEnd: () => void = () => undefined;

  /**
   * Sets the listener to the end of the newest socket, by `destroy` or otherwise. Call this when the driver has
   * connected: until then, the driver reports each failed address itself, and may connect to another one.
   */
  setEndListener(onEnd: () => void): void {
    this.#onEnd = onEnd;
  }

  /** Returns a new socket, which the driver connects itself. */
  create(): Socket {
    return this.#watch(new Socket());
  }

  connect({ socketPath, host = 'localhost', port = 0 }: Address): Socket {
    const socket = socketPath === undefined ? connect({ host, port }) : connect({ path: socketPath });
    return this.#watch(socket.setNoDelay(true));
  }

  /** @throws LockConfigurationError when the application's function returned no stream */
  watchStream(stream: unknown, setting: StreamSetting): Duplex {
    if (isStream(stream)) return this.#watch(stream);
    throw new LockConfigurationError(
      `${setting.name} must be a function that returns a new stream each time; it returned ${typeof stream}`,
      setting.option,
    );
  }

  /**
   * Asserts that an open connection has a watched socket. Only a watched socket reports the end of the connection, at
   * which the server frees the locks.
   * @throws LockConfigurationError when the driver made a socket of its own
   */
  assertSocketIsWatched(strategy: 'row' | 'session'): void {
    if (this.#openSockets.size > 0) return;
    throw new LockConfigurationError(
      `strategy '${strategy}' must notice the end of its connection, and the driver makes sockets of its own, ` +
        "as pg-native and mysql do: use pg or mysql2, or strategy 'lease'",
      'strategy',
    );
  }

  /** Destroys all sockets, and each that the driver creates later. */
  destroy(): void {
    this.#isDestroyed = true;
    for (const socket of this.#openSockets) socket.destroy();
  }

  #watch<T extends Duplex>(socket: T): T {
    this.#openSockets.add(socket);
    this.#newestSocket = socket;
    if (this.#isDestroyed) socket.destroy();
    if (socket instanceof Socket) socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS);
    return socket.once('close', () => {
      this.#openSockets.delete(socket);
      if (socket === this.#newestSocket) this.#onEnd();
    });
  }
}

/** Returns the application's own function that creates streams, if its options of the driver have one. */
export function getStreamFactory(options: unknown): ((config: unknown) => unknown) | undefined {
  const streamFactory: unknown = typeof options === 'object' && options ? Reflect.get(options, 'stream') : undefined;
  return typeof streamFactory === 'function' ? (config) => Reflect.apply(streamFactory, options, [config]) : undefined;
}

export function getConnectionId(client: unknown, property: string): string | undefined {
  const id: unknown = typeof client === 'object' && client ? Reflect.get(client, property) : undefined;
  return typeof id === 'number' ? String(id) : undefined;
}

function isStream(value: unknown): value is Duplex {
  return typeof value === 'object' && value !== null && 'destroy' in value && 'once' in value && 'write' in value;
}
