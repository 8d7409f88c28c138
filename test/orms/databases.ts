import { createPool } from 'mysql2/promise';
import { tableStatements } from 'nestjs-distributed-lock/sql';
import { Pool } from 'pg';
import { isQuickTier } from '../support/tier.js';
import { MysqlServer } from '../servers/mysql-server.js';
import { PostgresServer } from '../servers/postgres-server.js';

export type DatabaseName = 'postgres' | 'mariadb' | 'mysql';

const MYSQL: DatabaseName[] = (process.env['LOCK_MYSQLD'] ?? '') === '' ? [] : ['mysql'];

/** MySQL is left out where it is not installed. */
export const DATABASES: readonly DatabaseName[] = isQuickTier ? ['postgres'] : ['postgres', 'mariadb', ...MYSQL];

/** The table that the transactions of the tests write. */
const NOTES = 'create table note (id varchar(40) primary key)';

/** A name that clients might take for a placeholder. */
export const OTHER_FENCES = 'fences$1';

/** A server with our tables, a table of the application, and an operator who looks at them. */
export interface TestDatabase {
  readonly url: string;
  /** The notes that were committed. */
  notes(): Promise<string[]>;
  stop(): Promise<void>;
}

export async function startDatabase(name: DatabaseName): Promise<TestDatabase> {
  const server = await (name === 'postgres' ? PostgresServer.start() : MysqlServer.start(name));
  const { run, end } = name === 'postgres' ? operatePostgres(server.url) : operateMysql(server.url);
  const dialect = name === 'postgres' ? 'postgres' : 'mysql';
  const tables = [...tableStatements(dialect), ...tableStatements(dialect, { fence: OTHER_FENCES }), NOTES];
  for (const statement of tables) await run(statement);
  return {
    url: server.url,
    notes: async () => idsOf(await run('select id from note order by id')),
    stop: async () => {
      await end();
      await server.stop();
    },
  };
}

/** The ids in rows of the notes. */
export function idsOf(rows: unknown): string[] {
  return Array.isArray(rows) ? rows.map((row: { id: string }) => row.id) : [];
}

interface Operator {
  readonly run: (sql: string) => Promise<unknown>;
  readonly end: () => Promise<void>;
}

function operatePostgres(connectionString: string): Operator {
  const pool = new Pool({ connectionString });
  return { run: async (sql) => (await pool.query(sql)).rows, end: () => pool.end() };
}

function operateMysql(uri: string): Operator {
  const pool = createPool({ uri });
  return { run: async (sql) => (await pool.query(sql))[0], end: () => pool.end() };
}
