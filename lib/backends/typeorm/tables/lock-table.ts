import { LockConfigurationError } from '../../../core/index.js';
import { cleanError, DatabaseError, failureOf } from '../connections/database-error.js';
import type { Query, SqlDialect } from '../dialect/sql-dialect.js';
import { plainTable } from './table-name.js';

export const DEFAULT_LOCK_TABLE = 'distributed_lock';
export const DEFAULT_FENCE_TABLE = 'distributed_lock_fence';

/** Makes sure that the table is there, and the one that we know. With `create`, makes it where it is missing. */
export async function checkLockTable(
  query: Query,
  dialect: SqlDialect,
  table: string,
  { create }: { readonly create: boolean },
): Promise<void> {
  const unusable = (why: string): LockConfigurationError =>
    new LockConfigurationError(
      `the table ${plainTable(table)} cannot be used for locks (${why}). ${MIGRATION}, or set typeorm({ dataSource, synchronize: true })`,
      'tableName',
    );
  // Another process may create it at the same time, or this one may not be allowed to where it is there already.
  const failure = create ? await failureOf(query(dialect.createLockTable(table), [])) : undefined;
  await checkColumns(query, dialect, table, dialect.lockColumns, (why, isMissing) =>
    unusable(isMissing ? (failure?.message ?? why) : why),
  );
  await assertWritable(query, dialect, `update ${table} set token = token where 1 = 0`, unusable);
}

/**
 * Runs `change`, which changes nothing: a right that is missing, or a replica, is found before somebody needs a lock.
 * @throws what `unusable` makes of a right that is missing; DatabaseError when the server takes no writes
 */
export async function assertWritable(
  query: Query,
  dialect: SqlDialect,
  change: string,
  unusable: (why: string) => LockConfigurationError,
): Promise<void> {
  const failure = await failureOf(query(change, []));
  if (failure instanceof DatabaseError && dialect.isAboutTable(failure)) throw unusable(failure.message);
  if (failure) throw failure;
  await dialect.assertPrimary?.(query);
}

/** @throws LockConfigurationError when the table of the fences is missing, or of another shape */
export async function checkFenceTable(query: Query, dialect: SqlDialect, table: string): Promise<void> {
  const unusable = (why: string): LockConfigurationError =>
    new LockConfigurationError(
      `the table ${plainTable(table)} cannot be used for fences (${why}). ${MIGRATION}`,
      'tableName',
    );
  await checkColumns(query, dialect, table, dialect.fenceColumns, unusable);
}

const MIGRATION = 'Run the migration CreateDistributedLock1760000000000 of nestjs-distributed-lock/typeorm';

async function checkColumns(
  query: Query,
  dialect: SqlDialect,
  table: string,
  expected: SqlDialect['lockColumns'],
  unusable: (why: string, isMissing: boolean) => LockConfigurationError,
): Promise<void> {
  try {
    await query(`select ${Object.keys(expected).join(', ')} from ${table} where 1 = 0`, []);
  } catch (error) {
    const cause = cleanError(error);
    throw dialect.isAboutTable(cause) ? unusable(cause.message, true) : cause;
  }
  const columns = new Map((await dialect.describe(query, table)).map(({ name, type }) => [name, String(type)]));
  for (const [name, pattern] of Object.entries(expected)) {
    const type = columns.get(name) ?? 'not visible to us';
    if (!pattern.test(type)) throw unusable(`its column ${name} is ${type}, which does not match ${pattern}`, false);
  }
}
