import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { packCommand, readCommand } from './redis-protocol.js';
import { StandIn } from './stand-in.js';

const REFUSAL = "return redis.error_reply('ERR script tried accessing undeclared key')";

/**
 * A stand-in for servers such as Dragonfly, which refuse scripts that use keys whose names the command does not have: a
 * proxy that knows which scripts make names out of their first key, and turns calls without these names into an error.
 */
export class DeclaredKeysProxy extends StandIn {
  /** How many calls were refused. */
  refused = 0;
  readonly #namesKeys = new Map<string, boolean>();

  constructor(private readonly target: number) {
    super();
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  protected override connect(client: Socket): void {
    const server = this.connectBehind(this.target, client);
    let rest = Buffer.alloc(0);
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
