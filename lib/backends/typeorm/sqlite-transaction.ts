import { type EntityManager, QueryFailedError } from 'typeorm';
import { asSqliteDatabase, type SqliteDatabase } from '../sql/sqlite/driver.js';

/**
 * Takes the write lock of the file, by a `delete` of no rows.
 * @throws QueryFailedError when another process has the write lock
 */
export async function takeWriteLock(manager: EntityManager, table: string): Promise<void> {
  execOrThrowQueryFailed(asSqliteDatabase(await manager.queryRunner?.connect()), `delete from ${table} where 0`);
}

/**
 * Replaces the new transaction of `manager` by one that has the write lock from its beginning.
 * @throws QueryFailedError when another process writes
 */
export async function restartAsWriteTransaction(manager: EntityManager): Promise<void> {
  const database = asSqliteDatabase(await manager.queryRunner?.connect());
  database.exec('rollback');
  try {
    execOrThrowQueryFailed(database, 'begin immediate');
  } catch (error) {
    // TypeORM rolls back now. Without an open transaction, it would take every later transaction for a nested one.
    database.exec('begin');
    throw error;
  }
}

function execOrThrowQueryFailed(database: SqliteDatabase, sql: string): void {
  try {
    database.exec(sql);
  } catch (error) {
    throw error instanceof Error ? new QueryFailedError(sql, [], error) : error;
  }
}
