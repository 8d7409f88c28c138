import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { packReply, readCommand } from './redis-protocol.js';

const KNOWN_COMMANDS = /^(?:EVAL|EVALSHA|GET|SET|DEL|EXISTS|PTTL|PEXPIRE|PING)$/iu;

/**
 * A stand-in for proxies such as twemproxy, Envoy and Codis in front of several servers: each command goes to the server
 * of its first key, with all its keys.
 */
export class KeyRoutingProxy {
  readonly #sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    private readonly targets: readonly Redis[],
  ) {
    server.on('connection', (client) => this.#connect(client));
  }

  static async start(urls: readonly string[]): Promise<KeyRoutingProxy> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new KeyRoutingProxy(
      server,
      urls.map((url) => new Redis(url)),
    );
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    for (const target of this.targets) target.disconnect();
    this.server.close();
    await once(this.server, 'close');
  }

  #connect(client: Socket): void {
    let rest = Buffer.alloc(0);
    let replies = Promise.resolve();
    this.#sockets.add(client);
    client.on('error', () => undefined);
    client.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      for (let command = readCommand(rest); command; command = readCommand(rest)) {
        rest = rest.subarray(command.length);
        const reply = this.#answer(command.parts.map(String)).catch((error: unknown) => error);
        replies = replies.then(async () => void client.write(packReply(await reply)));
      }
    });
  }

  async #answer([name = '', ...args]: readonly string[]): Promise<unknown> {
    if (!KNOWN_COMMANDS.test(name)) throw new Error(`ERR unknown command '${name}'`);
    const firstKey = /^EVAL/iu.test(name) ? args[2] : args[0];
    const place = Buffer.from(firstKey ?? '').reduce((sum, byte) => (sum * 31 + byte) % 1_009, 0);
    return this.targets[place % this.targets.length]?.call(name, ...args);
  }
}
