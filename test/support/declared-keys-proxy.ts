import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { packCommand, readCommand } from './redis-protocol.js';

const REFUSAL = "return redis.error_reply('ERR script tried accessing undeclared key')";

/**
 * A stand-in for servers such as Dragonfly, which refuse scripts that use keys whose names the command does not have: a
 * proxy that knows which scripts make names out of their first key, and turns calls without these names into an error.
 */
export class DeclaredKeysProxy {
  /** How many calls were refused. */
  refused = 0;
  readonly #sockets = new Set<Socket>();
  readonly #namesKeys = new Map<string, boolean>();

  private constructor(
    private readonly server: Server,
    private readonly target: number,
  ) {
    server.on('connection', (client) => this.#connect(client));
  }

  static async start(target: number): Promise<DeclaredKeysProxy> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new DeclaredKeysProxy(server, target);
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  #connect(client: Socket): void {
    const server = connect(this.target, '127.0.0.1');
    let rest = Buffer.alloc(0);
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        client.destroy();
        server.destroy();
      });
    }
    server.pipe(client);
    client.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      for (let command = readCommand(rest); command; command = readCommand(rest)) {
        rest = rest.subarray(command.length);
        server.write(packCommand(this.#checked(command.parts)));
      }
    });
  }

  #checked(parts: readonly Buffer[]): readonly Buffer[] {
    const [name = '', script = '', keyCount = ''] = parts.map(String);
    if (!/^EVAL(?:SHA)?$/iu.test(name)) return parts;
    if (/^EVAL$/iu.test(name))
      this.#namesKeys.set(createHash('sha1').update(script).digest('hex'), script.includes("':q'"));
    const sha1 = /^EVALSHA$/iu.test(name) ? script : createHash('sha1').update(script).digest('hex');
    const keys = parts.slice(3, 3 + Number(keyCount)).map(String);
    const isDeclared = keys.length === 0 || keys.some((key) => key.endsWith(':q'));
    if (this.#namesKeys.get(sha1) !== true || isDeclared) return parts;
    this.refused += 1;
    return ['EVAL', REFUSAL, '0'].map((text) => Buffer.from(text));
  }
}
