import { LockConfigurationError } from '../../core/index.js';
import { cleanError } from './clean-error.js';
import type { Query, SqlDialect } from './sql-dialect.js';

export const DEFAULT_LOCK_TABLE = 'distributed_lock';
export const DEFAULT_FENCE_TABLE = 'distributed_lock_fence';

/** Names of tables and columns cannot be parameters, so they are checked instead. */
export function assertIdentifier(option: string, name: unknown): asserts name is string {
  if (typeof name === 'string' && /^[A-Za-z_][\w$]{0,62}$/u.test(name)) return;
  throw new LockConfigurationError(
    `${option} must be a plain identifier (letters, digits, "_", at most 63), because it becomes part of statements; it was ${JSON.stringify(name)}`,
    option,
  );
}

/** Makes sure that the table is there, and the one that we know. With `create`, makes it where it is missing. */
export async function checkLockTable(
  query: Query,
  dialect: SqlDialect,
  table: string,
  { create }: { readonly create: boolean },
): Promise<void> {
  // Another process may create it at the same time, or this one may not be allowed to where it is there already.
  const failure = create ? await failureOf(query(dialect.createLockTable(table), [])) : undefined;
  try {
    await query(`select ${Object.keys(dialect.lockColumns).join(', ')} from ${table} where 1 = 0`, []);
  } catch (error) {
    const cause = cleanError(error);
    throw dialect.isAboutTable(cause) ? unusable(table, (failure ?? cause).message) : cause;
  }
  const columns = new Map((await dialect.describe(query, table)).map(({ name, type }) => [name, String(type)]));
  for (const [name, expected] of Object.entries(dialect.lockColumns)) {
    const type = columns.get(name) ?? 'not visible to us';
    if (!expected.test(type)) throw unusable(table, `its column ${name} is ${type}, which does not match ${expected}`);
  }
}

function unusable(table: string, why: string): LockConfigurationError {
  return new LockConfigurationError(
    `the table ${table} cannot be used for locks (${why}). Run the migration ` +
      'CreateDistributedLock1760000000000 of nestjs-distributed-lock/typeorm, or set synchronize: true',
    'tableName',
  );
}

async function failureOf(promise: Promise<unknown>): Promise<Error | undefined> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    return cleanError(error);
  }
}
