import Database from 'libsql';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createConnection } from 'mysql2/promise';
import { fromMysql2, fromPg, fromSqlite, type SqlTransaction, tableStatements } from 'nestjs-distributed-lock/sql';
import { Client } from 'pg';
import { MysqlServer } from '../../servers/mysql-server.js';
import { PostgresServer } from '../../servers/postgres-server.js';
import { MEMORY_DIR } from '../../servers/memory-dir.js';

export const DATABASES = ['postgres', 'mariadb', 'mysql', 'sqlite'] as const;
export type DatabaseName = (typeof DATABASES)[number];

/** One connection of an application to its database. */
export interface Connection {
  readonly tx: SqlTransaction;
  ask(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  begin(): Promise<void>;
  end(): Promise<void>;
}

const BEGIN = { postgres: 'begin', mariadb: 'start transaction', mysql: 'start transaction', sqlite: 'begin' } as const;

/** Opens a connection by the database's driver. */
export async function openConnection(name: DatabaseName, url: string): Promise<Connection> {
  const { tx, end } = await (name === 'postgres' ? openPg(url) : name === 'sqlite' ? openSqlite(url) : openMysql(url));
  const ask: Connection['ask'] = (sql) => tx.query(sql, []);
  return { tx, ask, begin: async () => void (await ask(BEGIN[name])), end };
}

async function openPg(url: string) {
  const client = new Client({ connectionString: url });
  await client.connect();
  return { tx: fromPg(client), end: () => client.end() };
}

async function openMysql(url: string) {
  const connection = await createConnection({ uri: url });
  return { tx: fromMysql2(connection), end: () => connection.end() };
}

async function openSqlite(file: string) {
  const database = new Database(file, { timeout: 1 });
  // Without it a commit fails while another process reads.
  database.exec('pragma journal_mode = wal');
  return { tx: fromSqlite(database), end: async () => void database.close() };
}

/** A server, or a file, with our tables. */
export class TestDatabase {
  private constructor(
    readonly name: DatabaseName,
    readonly url: string,
    readonly server: PostgresServer | MysqlServer | undefined,
    readonly stop: () => Promise<void>,
  ) {}

  /** @param flags further arguments of a server of MySQL or MariaDB */
  static async start(name: DatabaseName, flags: readonly string[] = []): Promise<TestDatabase> {
    const database = await (name === 'sqlite' ? TestDatabase.#inFile() : TestDatabase.#onServer(name, flags));
    const connection = await openConnection(name, database.url);
    for (const statement of tableStatements(name === 'mariadb' ? 'mysql' : name)) await connection.ask(statement);
    await connection.end();
    return database;
  }

  static async #inFile(): Promise<TestDatabase> {
    const directory = await mkdtemp(join(MEMORY_DIR, 'sqlite-transactions-'));
    return new TestDatabase('sqlite', join(directory, 'test.db'), undefined, () => rm(directory, { recursive: true }));
  }

  static async #onServer(name: Exclude<DatabaseName, 'sqlite'>, flags: readonly string[]): Promise<TestDatabase> {
    const server = await (name === 'postgres' ? PostgresServer.start() : MysqlServer.start(name, flags));
    return new TestDatabase(name, server.url, server, () => server.stop());
  }
}
