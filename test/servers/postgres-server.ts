import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';

import { postgres } from '../../servers/postgres.js';
import { DataTemplate } from './data-template.js';
import { freePort } from './free-port.js';
import { MEMORY_DIR } from './memory-dir.js';
import { OwnServer } from './own-server.js';
import { ProcessFamily } from './process-family.js';
import { ServerProcess } from './server-process.js';

const template = new DataTemplate(postgres);

/** A real PostgreSQL on 127.0.0.1 with the superuser `postgres`, without a password, and the faults of a test. */
export class PostgresServer extends OwnServer {
  #family: ProcessFamily | undefined;

  /** @param settings further parameters, as in postgresql.conf */
  constructor(private readonly settings: Readonly<Record<string, string>> = {}) {
    super();
  }

  protected async prepare(): Promise<void> {
    this.directory = await mkdtemp(join(MEMORY_DIR, 'postgres-server-run-'));
    this.port = await freePort();
    postgres.account.own(this.directory);
    await template.copyTo(this.#data);
  }

  get url(): string {
    return postgres.address(this.port);
  }

  override freeze(): void {
    this.#family?.freeze();
  }

  override thaw(): void {
    this.#family?.thaw();
  }

  /** SIGKILL for all its processes. What was committed stays. */
  override async kill(): Promise<void> {
    this.#family?.kill();
    this.#family = undefined;
    await super.kill();
  }

  /** Kills it and starts it again on the same port, with an empty database or with all it had. */
  async restart({ empty }: { readonly empty: boolean }): Promise<void> {
    await this.kill();
    if (empty) {
      await this.#wipe();
      await template.copyTo(this.#data);
    }
    await this.launch();
  }

  /** Ends it for good and removes what it wrote. */
  async stop(): Promise<void> {
    await this.kill();
    await this.#wipe();
    await rm(this.directory, { recursive: true });
  }

  get #data(): string {
    return join(this.directory, 'data');
  }

  protected async launch(): Promise<void> {
    const [command, ...args] = postgres.serve(this.directory, this.port);
    const settings = Object.entries(this.settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    this.process = await ServerProcess.start({
      command,
      args: [...args, ...settings],
      cwd: this.directory,
      isReady: async (pid) => {
        this.#family = ProcessFamily.of(pid);
        return (await this.#ask('show data_directory')) === this.#data;
      },
    });
  }

  async #ask(question: string): Promise<unknown> {
    const client = new Client({ connectionString: this.url, connectionTimeoutMillis: 1_000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      const { rows } = await client.query<unknown[]>({ text: question, rowMode: 'array' });
      return rows[0]?.[0];
    } finally {
      await client.end();
    }
  }

  /** A killed server leaves a segment of shared memory behind, whose id is in its lock file. */
  async #wipe(): Promise<void> {
    const lockFile = await readFile(join(this.#data, 'postmaster.pid'), 'utf8').catch(() => '');
    const segment = lockFile.split('\n')[6]?.trim().split(/\s+/u)[1];
    if (segment !== undefined) spawnSync('ipcrm', ['-m', segment]);
    await rm(this.#data, { recursive: true, force: true });
  }
}
