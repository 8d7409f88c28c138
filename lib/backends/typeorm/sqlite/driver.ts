import type { EntityManager } from 'typeorm';
import { QueryFailedError } from 'typeorm';

type Row = Readonly<Record<string, unknown>>;

/** The used part of a database of better-sqlite3 or libsql. Both are synchronous. */
interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): {
    readonly reader: boolean;
    all(...values: unknown[]): readonly Row[];
    run(...values: unknown[]): unknown;
  };
}

/**
 * libsql 0.5 leaves a prepared statement that found the database locked unfinished; the connection then never lets go
 * of the write lock of whatever it writes next, and every other process waits for good. So a prepared statement must
 * not meet a lock: `exec`, which cleans up behind itself, takes the write lock first. Nothing else runs between the
 * steps.
 */
export function runAlone(client: unknown, sql: string, values: readonly unknown[]): readonly Row[] {
  const database = asDatabase(client);
  if (/^\s*(select|pragma)\b/iu.test(sql)) return run(database, sql, values);
  database.exec('begin immediate');
  try {
    const rows = run(database, sql, values);
    database.exec('commit');
    return rows;
  } catch (error) {
    database.exec('rollback');
    throw error;
  }
}

/**
 * Takes the write lock for the transaction that `manager` is in. @throws QueryFailedError when another process has it
 */
export async function lockForWriting(manager: EntityManager, table: string): Promise<void> {
  execute(asDatabase(await manager.queryRunner?.connect()), `delete from ${table} where 0`);
}

/** Makes the new transaction of `manager` one that writes. @throws QueryFailedError when another process writes */
export async function beginImmediately(manager: EntityManager): Promise<void> {
  const database = asDatabase(await manager.queryRunner?.connect());
  database.exec('rollback');
  try {
    execute(database, 'begin immediate');
  } catch (error) {
    // TypeORM rolls back now, and must find something: else it takes every later transaction for a nested one.
    database.exec('begin');
    throw error;
  }
}

function execute(database: SqliteDatabase, sql: string): void {
  try {
    database.exec(sql);
  } catch (error) {
    throw error instanceof Error ? new QueryFailedError(sql, [], error) : error;
  }
}

function run(database: SqliteDatabase, sql: string, values: readonly unknown[]): readonly Row[] {
  const statement = database.prepare(sql);
  if (statement.reader) return statement.all(...values);
  statement.run(...values);
  return [];
}

function asDatabase(client: unknown): SqliteDatabase {
  if (isDatabase(client)) return client;
  throw new Error('the driver of this data source is neither better-sqlite3 nor libsql');
}

function isDatabase(client: unknown): client is SqliteDatabase {
  return typeof client === 'object' && client !== null && 'exec' in client && 'prepare' in client;
}
