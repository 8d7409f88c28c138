import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { memcached } from '../../servers/memcached.js';
import { eventually, freePort } from '../support/index.js';
import { askMemcached } from './ask-memcached.js';
import { OwnServer } from './own-server.js';
import { ServerProcess } from './server-process.js';

export interface MemcachedServerOptions {
  /** @default a free one */
  readonly port?: number;
  /** Its memory is a file, so that `restart({ empty: false })` keeps all. @default false */
  readonly persistent?: boolean;
  /** Further arguments of memcached. */
  readonly args?: readonly string[];
  /** The only user it lets in (`-Y`). @default it lets everybody in */
  readonly credentials?: { readonly username: string; readonly password: string };
  /** In addition to this process's own environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A real memcached on 127.0.0.1, with the faults that a test may inflict on it. */
export class MemcachedServer extends OwnServer {
  constructor(private readonly options: MemcachedServerOptions = {}) {
    super();
  }

  protected async prepare(): Promise<void> {
    this.directory = await mkdtemp(join(tmpdir(), 'memcached-server-'));
    memcached.account.own(this.directory);
    this.port = this.options.port ?? (await freePort());
  }

  /** As in the backend's options. */
  get address(): string {
    return memcached.address(this.port);
  }

  /** Asks as an operator does: commands as they go over the wire, but for the last line's end. */
  async ask(commands: string): Promise<string> {
    const { credentials } = this.options;
    if (!credentials) return askMemcached(this.port, commands);
    const text = `${credentials.username} ${credentials.password}`;
    const reply = await askMemcached(this.port, `set auth 0 0 ${Buffer.byteLength(text)}\r\n${text}\r\n${commands}`);
    return reply.replace(/^STORED\r\n/, '');
  }

  /** The answer to `stats`. */
  async statistics(topic = ''): Promise<ReadonlyMap<string, string>> {
    const lines = (await this.ask(`stats ${topic}`)).matchAll(/^STAT (?<name>\S+) (?<value>.*)\r$/gm);
    return new Map(Array.from(lines, ({ groups }) => [groups?.name ?? '', groups?.value ?? '']));
  }

  /** Ends it and starts it again on the same port: killed, with nothing, or in peace, with all it had (if `persistent`). */
  async restart({ empty, env }: { readonly empty: boolean } & Pick<MemcachedServerOptions, 'env'>): Promise<void> {
    if (!empty && this.options.persistent !== true) throw new Error('Only a persistent server keeps its data');
    await this.process?.kill(empty ? 'SIGKILL' : 'SIGUSR1');
    // It takes what it finds for its own only if that was left in an earlier second.
    const second = Math.floor(Date.now() / 1_000);
    if (!empty) await eventually(() => Date.now() / 1_000 >= second + 1);
    else await rm(join(this.directory, 'memory'), { force: true });
    await this.launch(env);
  }

  /** Ends it for good and removes what it wrote. */
  async stop(): Promise<void> {
    await this.kill();
    await rm(this.directory, { recursive: true, force: true });
  }

  protected async launch(env = this.options.env ?? {}): Promise<void> {
    const { persistent = false, args = [], credentials } = this.options;
    const users = join(this.directory, 'users');
    if (credentials) await writeFile(users, `${credentials.username}:${credentials.password}\n`);
    const authentication = credentials ? ['-Y', users] : [];
    const memory = persistent ? ['-m', '64', '-e', join(this.directory, 'memory')] : ['-m', '16'];
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const flags = [
      '-l',
      '127.0.0.1',
      '-p',
      String(this.port),
      '-U',
      '0',
      '-t',
      '2',
      ...memory,
      ...authentication,
      ...args,
    ];
    const [command, ...rest] = memcached.account.command('env', ...variables, 'memcached', ...flags);
    this.process = await ServerProcess.start({
      command,
      args: rest,
      cwd: '/',
      isReady: async (pid) => (await this.ask('stats')).includes(`STAT pid ${pid}\r`),
    });
  }
}
