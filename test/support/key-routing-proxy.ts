import type { Socket } from 'node:net';
import { Redis } from 'ioredis';
import { packReply, readCommand } from './redis-protocol.js';
import { StandIn } from './stand-in.js';

const KNOWN_COMMANDS = /^(?:EVAL|EVALSHA|GET|SET|DEL|EXISTS|PTTL|PEXPIRE|PING)$/iu;

/**
 * A stand-in for proxies such as twemproxy, Envoy and Codis in front of several servers: each command goes to the server
 * of its first key, with all its keys.
 */
export class KeyRoutingProxy extends StandIn {
  readonly #targets: readonly Redis[];

  constructor(urls: readonly string[]) {
    super();
    this.#targets = urls.map((url) => new Redis(url));
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  override async stop(): Promise<void> {
    for (const target of this.#targets) target.disconnect();
    await super.stop();
  }

  protected override connect(client: Socket): void {
    let rest = Buffer.alloc(0);
    let replies = Promise.resolve();
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
    return this.#targets[place % this.#targets.length]?.call(name, ...args);
  }
}
