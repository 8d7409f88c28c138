import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { randomUUID } from 'node:crypto';
import type { Connection } from '../../test/support/harness-connection.js';
import { type Contestant, type Locker, retryUntilGranted, type Terms } from '../contestants/contestant.js';
import { urlOf } from '../contestants/url-of.js';

interface Statements {
  /** Inserts the row of a key unless it exists. Resolves to the number of inserted rows. */
  readonly insert: (key: string, owner: string) => Promise<number>;
  readonly remove: (key: string, owner: string) => Promise<unknown>;
  readonly close: () => Promise<void> | void;
}

const CREATE_TABLE_SQL =
  'create table if not exists floor_locks (name varchar(200) primary key, owner varchar(40) not null)';
/** Number of connections: as many as the lease strategy uses. */
const CONNECTIONS = 2;

export const POSTGRES_FLOOR = createSqlFloor(async (to) => {
  const pool = new Pool({ connectionString: urlOf(to), max: CONNECTIONS });
  await pool.query(CREATE_TABLE_SQL).catch(ignoreExistingTable);
  return {
    insert: async (key, owner) => {
      const text = 'insert into floor_locks values ($1, $2) on conflict do nothing';
      return (await pool.query({ name: 'insert', text, values: [key, owner] })).rowCount ?? 0;
    },
    remove: (key, owner) =>
      pool.query({
        name: 'delete',
        text: 'delete from floor_locks where name = $1 and owner = $2',
        values: [key, owner],
      }),
    close: () => pool.end(),
  };
});

export const MARIADB_FLOOR = createSqlFloor(async (to) => {
  const pool = createPool({ uri: urlOf(to), connectionLimit: CONNECTIONS });
  await pool.query(CREATE_TABLE_SQL).catch(ignoreExistingTable);
  const countChangedRows = async (sql: string, values: string[]): Promise<number> => {
    const [result] = await pool.execute(sql, values);
    return 'affectedRows' in result ? result.affectedRows : 0;
  };
  return {
    insert: (key, owner) => countChangedRows('insert ignore into floor_locks values (?, ?)', [key, owner]),
    remove: (key, owner) => countChangedRows('delete from floor_locks where name = ? and owner = ?', [key, owner]),
    close: () => pool.end(),
  };
});

export const SQLITE_FLOOR = createSqlFloor(async (to) => {
  if (to.backend !== 'sqlite') throw new Error(`${to.backend} is not SQLite`);
  const { default: Database } = await import('libsql');
  const database = new Database(to.database, { timeout: 5_000 });
  database.exec('pragma journal_mode = wal');
  database.exec(CREATE_TABLE_SQL);
  const insert = database.prepare('insert or ignore into floor_locks values (?, ?)');
  const remove = database.prepare('delete from floor_locks where name = ? and owner = ?');
  return {
    insert: async (key, owner) => insert.run(key, owner).changes,
    remove: async (key, owner) => remove.run(key, owner).changes,
    close: () => void database.close(),
  };
});

function createSqlFloor(open: (to: Connection) => Promise<Statements>): Contestant {
  return {
    name: 'floor: INSERT + DELETE',
    renewsLease: false,
    connect: async (to, terms) => createLocker(await open(to), terms),
  };
}

function createLocker({ insert, remove, close }: Statements, terms: Terms): Locker {
  return {
    withLock: async (key, work) => {
      const owner = randomUUID();
      await retryUntilGranted(async () => (await insert(key, owner)) === 1, terms);
      try {
        await work();
      } finally {
        await remove(key, owner);
      }
    },
    close,
  };
}

/** Ignores the error of a process that creates the table at the same time as another one. */
function ignoreExistingTable(error: unknown): void {
  if (!(error instanceof Error && /exists|duplicate key/u.test(error.message))) throw error;
}
