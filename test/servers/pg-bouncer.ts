import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';

import { Account } from '../../servers/account.js';
import { freePort } from './free-port.js';
import { ServerProcess } from './server-process.js';

const ACCOUNT = new Account('postgres');

/** Outside of the path of those who are not root. */
const DEBIAN = '/usr/sbin/pgbouncer';

/** A real PgBouncer in transaction mode: many clients share a few connections to a PostgreSQL, each for one transaction. */
export class PgBouncer implements AsyncDisposable {
  #process: ServerProcess | undefined;

  private constructor(
    readonly port: number,
    private readonly directory: string,
  ) {}

  /** @param poolSize how many connections to the server there are */
  static async start(server: { readonly port: number }, poolSize = 1): Promise<PgBouncer> {
    const directory = await mkdtemp(join(tmpdir(), 'pg-bouncer-'));
    const bouncer = new PgBouncer(await freePort(), directory);
    const settings = [
      '[databases]',
      `postgres = host=127.0.0.1 port=${server.port} user=postgres`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${bouncer.port}`,
      'unix_socket_dir =',
      'auth_type = any',
      'pool_mode = transaction',
      `default_pool_size = ${poolSize}`,
    ];
    await writeFile(bouncer.#settings, settings.join('\n'));
    ACCOUNT.own(directory);
    await bouncer.#launch();
    return bouncer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process?.kill();
    await rm(this.directory, { recursive: true });
  }

  get #settings(): string {
    return join(this.directory, 'pgbouncer.ini');
  }

  async #launch(): Promise<void> {
    const [command, ...args] = ACCOUNT.command(existsSync(DEBIAN) ? DEBIAN : 'pgbouncer', this.#settings);
    this.#process = await ServerProcess.start({
      command,
      args,
      cwd: this.directory,
      isReady: async () => {
        const client = new Client({ connectionString: `postgres://postgres@127.0.0.1:${this.port}/postgres` });
        client.on('error', () => undefined);
        await client.connect();
        await client.end();
        return true;
      },
    });
  }
}
