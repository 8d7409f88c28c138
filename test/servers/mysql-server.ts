import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createConnection } from 'mysql2/promise';

import { mariadb } from '../../servers/mariadb.js';
import { mysql } from '../../servers/mysql.js';
import { DataTemplate } from './data-template.js';
import { freePort } from './free-port.js';
import { MEMORY_DIR } from './memory-dir.js';
import { OwnServer } from './own-server.js';
import { ServerProcess } from './server-process.js';

const TEMPLATES = { mariadb: new DataTemplate(mariadb), mysql: new DataTemplate(mysql) };
const RECIPES = { mariadb, mysql };

export type MysqlKind = keyof typeof RECIPES;

/** A real MariaDB or MySQL on 127.0.0.1 with the user `root`, without a password, an empty database `test`, and the faults of a test. */
export class MysqlServer extends OwnServer {
  /** @param flags further arguments of the server */
  constructor(
    private readonly kind: MysqlKind,
    private readonly flags: readonly string[] = [],
  ) {
    super();
  }

  protected async prepare(): Promise<void> {
    this.directory = await mkdtemp(join(MEMORY_DIR, `${this.kind}-server-run-`));
    this.port = await freePort();
    RECIPES[this.kind].account.own(this.directory);
    await TEMPLATES[this.kind].copyTo(this.#data);
  }

  get url(): string {
    return RECIPES[this.kind].address(this.port);
  }

  /** Kills it and starts it again on the same port, with an empty database or with all it had. */
  async restart({ empty }: { readonly empty: boolean }): Promise<void> {
    await this.kill();
    if (empty) {
      await rm(this.#data, { recursive: true });
      await TEMPLATES[this.kind].copyTo(this.#data);
    }
    await this.launch();
  }

  /** Ends it for good and removes what it wrote. */
  async stop(): Promise<void> {
    await this.kill();
    await rm(this.directory, { recursive: true });
  }

  get #data(): string {
    return join(this.directory, 'data');
  }

  protected async launch(): Promise<void> {
    const [command, ...args] = RECIPES[this.kind].serve(this.directory, this.port);
    this.process = await ServerProcess.start({
      command,
      args: [...args, ...this.flags],
      cwd: this.directory,
      readyWithinMs: 60_000,
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
