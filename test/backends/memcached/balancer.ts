import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

import { resetSocket } from '../../support/reset-socket.js';

/** One address in front of several servers: each new connection leads to the next of them. */
export class Balancer {
  readonly #sockets = new Set<Socket>();
  #accepted = 0;

  private constructor(
    private readonly server: Server,
    /** Ports of the servers, which a test may change. */
    public ports: readonly number[],
  ) {
    server.on('connection', (client) => this.#connect(client));
  }

  static async start(...ports: readonly number[]): Promise<Balancer> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Balancer(server, ports);
  }

  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  reset(): void {
    for (const socket of this.#sockets) resetSocket(socket);
  }

  async close(): Promise<void> {
    this.reset();
    this.server.close();
  }

  #connect(client: Socket): void {
    const port = this.ports[this.#accepted % this.ports.length] ?? 0;
    this.#accepted += 1;
    const server = connect(port, '127.0.0.1');
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from.on('error', () => undefined).on('close', () => (this.#sockets.delete(from), to.destroy()));
      from.pipe(to);
    }
  }
}
