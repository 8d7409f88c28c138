import { sql } from 'drizzle-orm';
import { drizzle as drizzleMysql, type MySql2Database } from 'drizzle-orm/mysql2';
import { drizzle as drizzlePostgres, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createPool } from 'mysql2/promise';
import { fromDrizzle } from 'nestjs-distributed-lock/sql';
import { Pool } from 'pg';
import postgres from 'postgres';
import { idsOf } from './databases.js';
import { describeAdapter } from './describe-adapter.js';
import type { Client, Work } from './orm-client.js';

type PostgresTransaction = Parameters<Parameters<NodePgDatabase['transaction']>[0]>[0];
type PostgresJsTransaction = Parameters<Parameters<PostgresJsDatabase['transaction']>[0]>[0];
type MysqlTransaction = Parameters<Parameters<MySql2Database['transaction']>[0]>[0];

function workInPostgres(tx: PostgresTransaction): Work {
  return {
    tx: fromDrizzle(tx, sql, 'postgres'),
    write: async (id) => void (await tx.execute(sql`insert into note (id) values (${id})`)),
    read: async () => idsOf((await tx.execute(sql`select id from note`)).rows),
    nest: (work) => tx.transaction((inner) => work(workInPostgres(inner))),
  };
}

function workInPostgresJs(tx: PostgresJsTransaction): Work {
  return {
    tx: fromDrizzle(tx, sql, 'postgres'),
    write: async (id) => void (await tx.execute(sql`insert into note (id) values (${id})`)),
    read: async () => idsOf(await tx.execute(sql`select id from note`)),
    nest: (work) => tx.transaction((inner) => work(workInPostgresJs(inner))),
  };
}

function workInMysql(tx: MysqlTransaction): Work {
  return {
    tx: fromDrizzle(tx, sql, 'mysql'),
    write: async (id) => void (await tx.execute(sql`insert into note (id) values (${id})`)),
    read: async () => idsOf((await tx.execute(sql`select id from note`))[0]),
    nest: (work) => tx.transaction((inner) => work(workInMysql(inner))),
  };
}

function openPostgres(connectionString: string): Client {
  const pool = new Pool({ connectionString });
  const db = drizzlePostgres(pool);
  return {
    transaction: (work, { repeatableRead } = { repeatableRead: false }) =>
      db.transaction((tx) => work(workInPostgres(tx)), repeatableRead ? { isolationLevel: 'repeatable read' } : {}),
    outside: () => fromDrizzle(db, sql, 'postgres'),
    end: () => pool.end(),
  };
}

function openPostgresJs(url: string): Client {
  const client = postgres(url);
  const db = drizzlePostgresJs(client);
  return {
    transaction: (work, { repeatableRead } = { repeatableRead: false }) =>
      db.transaction(
        (tx) => work(workInPostgresJs(tx)),
        repeatableRead ? { isolationLevel: 'repeatable read' } : undefined,
      ),
    outside: () => fromDrizzle(db, sql, 'postgres'),
    end: () => client.end(),
  };
}

function openMysql(uri: string): Client {
  const pool = createPool({ uri });
  const db = drizzleMysql(pool);
  return {
    transaction: (work) => db.transaction((tx) => work(workInMysql(tx))),
    outside: () => fromDrizzle(db, sql, 'mysql'),
    end: () => pool.end(),
  };
}

describeAdapter(
  'fromDrizzle',
  async (database, url) => (database === 'postgres' ? openPostgres(url) : openMysql(url)),
  { knowsItsEnd: false },
);

describeAdapter('fromDrizzle by the driver postgres', async (_, url) => openPostgresJs(url), {
  databases: ['postgres'],
  knowsItsEnd: false,
});
