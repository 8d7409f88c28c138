import { connect, Socket } from 'node:net';

/** Where a server is, as a driver knows it. */
export interface Address {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly socketPath?: string | undefined;
}

/**
 * The sockets of one connection. Whoever made them can end them whatever the driver is doing: a driver that says goodbye
 * to a frozen server waits for ever, and keeps the process alive.
 */
export class Sockets {
  readonly #open = new Set<Socket>();

  /** @param onClose told of every socket that closes, by whomever */
  constructor(private readonly onClose: () => void) {}

  /** One that the driver connects itself. */
  create(): Socket {
    return this.#watch(new Socket());
  }

  connect({ socketPath, host = 'localhost', port = 0 }: Address): Socket {
    const socket = socketPath === undefined ? connect({ host, port }) : connect({ path: socketPath });
    return this.#watch(socket.setKeepAlive(true).setNoDelay(true));
  }

  destroy(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #watch(socket: Socket): Socket {
    this.#open.add(socket);
    return socket.once('close', () => {
      this.#open.delete(socket);
      this.onClose();
    });
  }
}
