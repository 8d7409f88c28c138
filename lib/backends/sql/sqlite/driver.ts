import { readRows, type Rows } from '../connections/query.js';
import { assertSameFiles } from './file-identity.js';

/**
 * Milliseconds for which the driver waits for the write lock and blocks the event loop. The store repeats the
 * statement.
 */
export const BUSY_TIMEOUT_MS = 1;

export function isInMemory(file: string): boolean {
  return /^(|:memory:|file::memory:.*|file:.*[?&](mode=memory|vfs=memdb)(&.*)?)$/u.test(file);
}

/** Common interface of better-sqlite3, libsql and `node:sqlite`. All three drivers are synchronous. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): {
    readonly reader?: boolean;
    all(...values: unknown[]): readonly unknown[];
    run(...values: unknown[]): unknown;
  };
  close(): unknown;
}

/**
 * Takes the write lock by `exec` before a statement that writes. libsql 0.5 leaves a prepared statement unfinished when
 * another process has the lock. The connection then keeps the write lock of its next write, and all other processes
 * wait forever. The driver is synchronous, so no other statement runs between the steps.
 */
export function runInWriteTransaction(client: unknown, sql: string, values: readonly unknown[]): Rows {
  const database = asSqliteDatabase(client);
  assertSameFiles(database);
  if (/^\s*(select|pragma)\b/iu.test(sql)) return runStatement(database, sql, values);
  database.exec('begin immediate');
  try {
    const rows = runStatement(database, sql, values);
    database.exec('commit');
    return rows;
  } catch (error) {
    rollBack(database);
    throw error;
  }
}

/** Never throws: after some failures, such as a full disk, SQLite has already rolled back by itself. */
function rollBack(database: SqliteDatabase): void {
  try {
    database.exec('rollback');
  } catch {
    // The caller throws the error of the statement.
  }
}

/** Runs a statement by `all` unless `reader` is false. `node:sqlite` has no `reader`: its `all` runs any statement. */
export function runStatement(database: Pick<SqliteDatabase, 'prepare'>, sql: string, values: readonly unknown[]): Rows {
  const statement = database.prepare(sql);
  if (statement.reader !== false) return readRows(statement.all(...values));
  statement.run(...values);
  return [];
}

export function asSqliteDatabase(client: unknown): SqliteDatabase {
  if (isDatabase(client)) return client;
  throw new Error('the driver must have the methods of better-sqlite3');
}

function isDatabase(client: unknown): client is SqliteDatabase {
  return typeof client === 'object' && client !== null && 'exec' in client && 'prepare' in client;
}
