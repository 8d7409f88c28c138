import { findErrorCodes } from '../connections/client-error.js';
import { readRows } from '../connections/query.js';
import { runStatement, type SqliteDatabase } from '../sqlite/driver.js';
import type { SqlTransaction } from './sql-transaction.js';

interface PgClient {
  query(sql: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
  /** Exists since pg 8.17. Returns `T` in a transaction that has not failed. */
  getTransactionStatus?(): string | null;
}

/**
 * Returns the transaction of a client of `pg`, after `begin`. A pool has none: its statements run on different
 * connections.
 */
export function fromPg(client: PgClient): SqlTransaction {
  const query: SqlTransaction['query'] = async (sql, values) => readRows((await client.query(sql, [...values])).rows);
  const isActive = async (): Promise<boolean> => {
    const status = client.getTransactionStatus?.();
    return typeof status === 'string' ? status === 'T' : canSetSavepoint(query);
  };
  return { database: 'postgres', query, isActive };
}

interface Mysql2Connection {
  query(sql: string, values?: unknown[]): Promise<unknown>;
}

/** Returns the transaction of a connection of `mysql2/promise`, after `beginTransaction`. */
export function fromMysql2(connection: Mysql2Connection): SqlTransaction {
  const query: SqlTransaction['query'] = async (sql, values) => readRows(await connection.query(sql, [...values]));
  return { database: 'mysql', query, isActive: () => canSetSavepoint(query) };
}

interface OpenSqlite extends Omit<SqliteDatabase, 'close'> {
  /** Property of `better-sqlite3`. */
  readonly inTransaction?: boolean;
  /** Property of `node:sqlite`. */
  readonly isTransaction?: boolean;
}

/**
 * Returns the transaction of a database of `better-sqlite3`, `libsql` or `node:sqlite`, after `begin`. After `begin
 * immediate`, the transaction has the file's only write lock already.
 */
export function fromSqlite(database: OpenSqlite): SqlTransaction {
  return {
    database: 'sqlite',
    async query(sql, values) {
      // Other statements go to `exec`, because libsql 0.5 leaves a prepared one unfinished when another process has the
      // lock: see `runInWriteTransaction`.
      if (values.length > 0 || /^\s*select\b/iu.test(sql)) return runStatement(database, sql, values);
      database.exec(sql);
      return [];
    },
    isActive: () => database.inTransaction ?? database.isTransaction ?? true,
  };
}

/** Checks that a transaction is open: without one, PostgreSQL refuses a savepoint, and MySQL forgets it at once. */
async function canSetSavepoint(query: SqlTransaction['query']): Promise<boolean> {
  try {
    await query('savepoint nestjs_distributed_lock', []);
    await query('release savepoint nestjs_distributed_lock', []);
    return true;
  } catch (error) {
    if (findErrorCodes(error).some((code) => /^(25P01|3B001|ER_SP_DOES_NOT_EXIST)$/u.test(code))) return false;
    throw error;
  }
}
