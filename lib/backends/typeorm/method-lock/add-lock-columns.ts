import type { QueryRunner } from 'typeorm';
import { rowsOf } from '../rows-of.js';
import type { Query } from '../sql-dialect.js';
import { methodLockDialectOf } from './databases.js';
import type { MethodLockDialect } from './method-lock-dialect.js';
import { type MethodLockColumns, methodLockTable } from './method-lock-table.js';

/**
 * Adds the columns that an older table of locks lacks, empty and not required, so that older programs go on as before. For
 * the `up` of a migration of yours; again = nothing. What is there already is left alone.
 * @throws LockConfigurationError for a name that is more than a name
 */
export async function addLockColumns(
  queryRunner: QueryRunner,
  { tableName, columns }: { readonly tableName: string; readonly columns: MethodLockColumns },
): Promise<void> {
  const { options } = queryRunner.connection;
  const table = methodLockTable(options, { tableName, columns, abandonedAfterMs: Infinity });
  const query: Query = async (sql, parameters) => rowsOf(await queryRunner.query(sql, [...parameters]));
  await addMissingColumns(query, methodLockDialectOf(options.type), table.rows, table.columns);
}

/** Adds what is not there yet. */
export async function addMissingColumns(
  query: Query,
  dialect: MethodLockDialect,
  table: string,
  columns: Readonly<Record<'expiresAt' | 'token' | 'metadata', string>>,
): Promise<void> {
  const present = async (): Promise<ReadonlySet<unknown>> =>
    new Set((await dialect.describe(query, table)).map(({ name }) => name));
  const found = await present();
  for (const part of ['expiresAt', 'token', 'metadata'] as const) {
    const column = columns[part];
    if (found.has(column)) continue;
    const change = `add column ${dialect.quote(column)} ${dialect.added[part]} null`;
    try {
      await query(`alter table ${table} ${change}`, []);
    } catch (error) {
      // Another process may have been faster.
      if (!(await present()).has(column)) throw error;
    }
  }
}
