import { join } from 'node:path';
import { createDatabase } from '../../stampede/sale-database.js';
import type { DatabaseType } from '../../stampede/shop-process/database-type.js';
import { MysqlServer } from '../servers/mysql-server.js';
import { PostgresServer } from '../servers/postgres-server.js';
import { TemporaryDirectory } from '../support/temporary-directory.js';

export const DATABASES = ['sqlite', 'postgres', 'mariadb'] as const satisfies DatabaseType[];

const SERVERS = {
  postgres: { start: () => PostgresServer.start(), variable: 'POSTGRES_URL' },
  mariadb: { start: () => MysqlServer.start('mariadb'), variable: 'MARIADB_URL' },
};

/** A place for sales: a directory of SQLite files, or a server. */
export interface SaleServer extends AsyncDisposable {
  /** Settings that lead the sample to a new, empty database there, which has the locks, too. */
  settings(): Promise<Record<string, string>>;
}

export async function startSaleServer(type: DatabaseType): Promise<SaleServer> {
  return type === 'sqlite' ? fileServer() : realServer(type);
}

async function fileServer(): Promise<SaleServer> {
  const directory = new TemporaryDirectory('sales');
  let files = 0;
  return {
    settings: async () => ({ SALE_DB: join(directory.path, `${(files += 1)}.sqlite`) }),
    [Symbol.asyncDispose]: async () => directory[Symbol.dispose](),
  };
}

async function realServer(type: keyof typeof SERVERS): Promise<SaleServer> {
  const { start, variable } = SERVERS[type];
  const server = await start();
  const settings = async (): Promise<Record<string, string>> => {
    const { address } = await createDatabase(server.url);
    return { SALE_DB: address, [variable]: address };
  };
  return { settings, [Symbol.asyncDispose]: () => server.stop() };
}
