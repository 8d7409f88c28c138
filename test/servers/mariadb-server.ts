import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createConnection } from 'mysql2/promise';

import { DataTemplate } from './data-template.js';
import { freePort } from './free-port.js';
import { ServerAccount } from './server-account.js';
import { ServerProcess } from './server-process.js';

const LOG_FILE_SIZE = '--innodb-log-file-size=4M';

const account = new ServerAccount('mysql');
const template = new DataTemplate(account, (directory) => {
  const how = ['--no-defaults', '--auth-root-authentication-method=normal', LOG_FILE_SIZE];
  return ['mariadb-install-db', ...how, `--datadir=${directory}`];
});

const FLAGS = [
  '--bind-address=127.0.0.1',
  '--skip-name-resolve',
  '--skip-log-bin',
  '--innodb-flush-log-at-trx-commit=2',
  '--innodb-flush-method=nosync',
  '--innodb-buffer-pool-size=16M',
  '--performance-schema=OFF',
  LOG_FILE_SIZE,
];

/** A real MariaDB on 127.0.0.1 with the user `root`, without a password, an empty database `test`, and the faults of a test. */
export class MariadbServer {
  #process: ServerProcess | undefined;

  private constructor(
    readonly port: number,
    readonly directory: string,
    private readonly flags: readonly string[],
  ) {}

  /** @param flags further arguments of mariadbd */
  static async start(flags: readonly string[] = []): Promise<MariadbServer> {
    const directory = await mkdtemp(join(tmpdir(), 'mariadb-server-run-'));
    const server = new MariadbServer(await freePort(), directory, flags);
    account.own(directory);
    await template.copyTo(server.#data);
    try {
      await server.#launch();
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  get url(): string {
    return `mysql://root@127.0.0.1:${this.port}/test`;
  }

  /** Stops answering and keeps every connection open. */
  freeze(): void {
    this.#process?.freeze();
  }

  thaw(): void {
    this.#process?.thaw();
  }

  /** SIGKILL. What was committed stays. */
  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  /** Kills it and starts it again on the same port, with an empty database or with all it had. */
  async restart({ empty }: { readonly empty: boolean }): Promise<void> {
    await this.kill();
    if (empty) {
      await rm(this.#data, { recursive: true });
      await template.copyTo(this.#data);
    }
    await this.#launch();
  }

  /** Ends it for good and removes what it wrote. */
  async stop(): Promise<void> {
    await this.kill();
    await rm(this.directory, { recursive: true });
  }

  get #data(): string {
    return join(this.directory, 'data');
  }

  async #launch(): Promise<void> {
    const where = [`--datadir=${this.#data}`, `--port=${this.port}`, `--socket=${join(this.directory, 'socket')}`];
    const [command, ...args] = account.command('mariadbd', '--no-defaults', ...where, ...FLAGS, ...this.flags);
    this.#process = await ServerProcess.start({
      command,
      args,
      cwd: this.directory,
      readyWithinMs: 20_000,
      isReady: async () => (await this.#dataDirectory()) === `${this.#data}/`,
    });
  }

  async #dataDirectory(): Promise<unknown> {
    const client = await createConnection({ uri: this.url, connectTimeout: 1_000 });
    client.on('error', () => undefined);
    try {
      const [rows] = await client.query({ sql: 'select @@datadir', rowsAsArray: true });
      return Array.isArray(rows) && Array.isArray(rows[0]) ? rows[0][0] : undefined;
    } finally {
      client.destroy();
    }
  }
}
