import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Startable } from './startable.js';

/** Something on a port of 127.0.0.1 that its clients take for a server: a proxy, or one that only a test knows. */
export abstract class StandIn extends Startable {
  /** Those that are open. */
  protected readonly sockets = new Set<Socket>();
  readonly #server: Server;

  constructor(server = createServer(), event: 'connection' | 'secureConnection' = 'connection') {
    super();
    this.#server = server.on('connection', (socket) => this.keep(socket));
    server.on(event, (client) => this.connect(client));
  }

  protected abstract connect(client: Socket): void;

  async start(): Promise<void> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get connections(): number {
    return this.sockets.size;
  }

  /** Ends all connections. */
  reset(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.reset();
    this.#server.close();
    await once(this.#server, 'close');
  }

  close(): Promise<void> {
    return this.stop();
  }

  /** Has it end with the stand-in. */
  protected keep(socket: Socket): Socket {
    this.sockets.add(socket);
    return socket.on('error', () => undefined).on('close', () => this.sockets.delete(socket));
  }

  /** A connection to the server behind it, each of which ends with the other. */
  protected connectBehind(port: number, client: Socket): Socket {
    const server = this.keep(connect(port, '127.0.0.1'));
    client.on('close', () => server.destroy());
    return server.on('close', () => client.destroy());
  }
}

/** Does to each client what a test wants. */
export class Listener extends StandIn {
  /** So many have come. */
  accepted = 0;

  constructor(private readonly onClient: (client: Socket, listener: Listener) => void) {
    super();
  }

  protected override connect(client: Socket): void {
    this.accepted += 1;
    this.onClient(client, this);
  }

  /** Lets the client speak with the server on this port. */
  forward(client: Socket, port: number): void {
    client.pipe(this.connectBehind(port, client)).pipe(client);
  }
}
