import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { askRedis } from './ask-redis.js';
import { freePort } from './free-port.js';
import { MEMORY_DIR } from './memory-dir.js';
import { OwnServer } from './own-server.js';
import { ServerProcess } from './server-process.js';

export interface RedisServerOptions {
  /** @default a free one */
  readonly port?: number;
  /** Where its data lives; left alone by `stop()` when given. @default a temporary directory of its own */
  readonly dir?: string;
  /** Every write is on disk before it is answered, so that `restart({ empty: false })` keeps all. @default false */
  readonly persistent?: boolean;
  /** Further arguments of redis-server. */
  readonly args?: readonly string[];
}

/** A real redis-server on 127.0.0.1, started in about 20 ms, with the faults that a test may inflict on it. */
export class RedisServer extends OwnServer {
  constructor(private readonly options: RedisServerOptions = {}) {
    super();
  }

  protected async prepare(): Promise<void> {
    this.directory = this.options.dir ?? (await mkdtemp(join(MEMORY_DIR, 'redis-server-')));
    this.port = this.options.port ?? (await freePort());
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Kills it and starts it again on the same port, with nothing or (only when `persistent`) with all it had. */
  async restart({ empty }: { readonly empty: boolean }): Promise<void> {
    if (!empty && this.options.persistent !== true) throw new Error('Only a persistent server keeps its data');
    await this.kill();
    if (empty) {
      await rm(this.directory, { recursive: true, force: true });
      await mkdir(this.directory, { recursive: true });
    }
    await this.launch();
  }

  /** Ends it for good and removes what it wrote. */
  async stop(): Promise<void> {
    await this.kill();
    if (this.options.dir === undefined) await rm(this.directory, { recursive: true, force: true });
  }

  /** How often each command ran since the server started, by its name in lower case: what a backend really sends. */
  async commandStats(): Promise<Map<string, number>> {
    const info = await askRedis(this.port, 'INFO commandstats');
    const lines = info.matchAll(/^cmdstat_(?<name>[^:]+):calls=(?<calls>\d+)/gm);
    return new Map(Array.from(lines, ({ groups }) => [groups?.name ?? '', Number(groups?.calls)]));
  }

  protected async launch(): Promise<void> {
    const flags = {
      port: this.port,
      bind: '127.0.0.1',
      dir: this.directory,
      save: '',
      appendonly: this.options.persistent === true ? 'yes' : 'no',
      appendfsync: 'always',
      'enable-debug-command': 'local',
    };
    const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);
    this.process = await ServerProcess.start({
      command: 'redis-server',
      args: [...args, ...(this.options.args ?? [])],
      cwd: this.directory,
      isReady: async (pid) => {
        const info = await askRedis(this.port, 'INFO');
        return info.includes(`process_id:${pid}\r`) && info.includes('\nloading:0\r');
      },
    });
  }
}
