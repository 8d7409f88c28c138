import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import libsql from 'libsql';
import { createConnection } from 'mysql2/promise';
import { Client } from 'pg';
import type { DataSourceOptions } from 'typeorm';
import { MysqlServer } from '../../servers/mysql-server.js';
import { PostgresServer } from '../../servers/postgres-server.js';
import { MEMORY_DIR } from '../../servers/memory-dir.js';
import { wantedOf } from '../../support/wanted-backends.js';

export interface TestDatabase {
  readonly options: DataSourceOptions;
  /** Another connection in a transaction, which has set what remains of the stock to 50. */
  writer(): Promise<{ commit(): Promise<void> }>;
  stop(): Promise<void>;
}

const WRITE = 'update stock set remaining = 50, version = version + 1 where id = 42';

const DATABASES = { sqlite: startSqlite, postgres: startPostgres, mariadb: startMariadb };

/** Those that `LOCK_BACKENDS` leaves in. */
export function databases(): { name: string; start: () => Promise<TestDatabase> }[] {
  return wantedOf(['sqlite', 'postgres', 'mariadb']).map((name) => ({ name, start: DATABASES[name] }));
}

async function startSqlite(): Promise<TestDatabase> {
  const directory = await mkdtemp(join(MEMORY_DIR, 'optimistic-sqlite-'));
  const database = join(directory, 'test.sqlite');
  return {
    options: { type: 'better-sqlite3', driver: libsql, database, enableWAL: true, timeout: 5 },
    writer: async () => {
      const other = new libsql(database);
      other.exec('begin immediate');
      other.exec(WRITE);
      return {
        commit: async () => {
          other.exec('commit');
          other.close();
        },
      };
    },
    stop: () => rm(directory, { recursive: true }),
  };
}

async function startPostgres(): Promise<TestDatabase> {
  const server = await PostgresServer.start({ deadlock_timeout: '50ms' });
  return {
    options: { type: 'postgres', url: server.url, poolSize: 20 },
    writer: async () => {
      const client = new Client({ connectionString: server.url });
      await client.connect();
      await client.query('begin');
      await client.query(WRITE);
      return { commit: () => client.query('commit').then(() => client.end()) };
    },
    stop: () => server.stop(),
  };
}

async function startMariadb(): Promise<TestDatabase> {
  const server = await MysqlServer.start('mariadb');
  return {
    options: { type: 'mariadb', url: server.url, poolSize: 20 },
    writer: async () => {
      const client = await createConnection({ uri: server.url });
      await client.query('begin');
      await client.query(WRITE);
      return { commit: () => client.query('commit').then(() => client.end()) };
    },
    stop: () => server.stop(),
  };
}
