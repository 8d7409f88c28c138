import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** A server that does whatever a test wants to each connection, and remembers what was written to it. */
export class ScriptedServer implements AsyncDisposable {
  /** The text of each read, over all connections. */
  readonly received: string[] = [];
  readonly #sockets = new Set<Socket>();
  closed = 0;

  private constructor(private readonly server: Server) {}

  static async start(onData: (socket: Socket, text: string) => void): Promise<ScriptedServer> {
    const server = createServer();
    const scripted = new ScriptedServer(server);
    server.on('connection', (socket) => {
      scripted.#sockets.add(socket);
      socket.setNoDelay(true).on('error', () => undefined);
      socket.on('close', () => (scripted.closed += 1));
      socket.on('data', (chunk) => {
        scripted.received.push(chunk.toString());
        onData(socket, chunk.toString());
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return scripted;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }
}
