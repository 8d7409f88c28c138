import type { QueryRunner } from 'typeorm';
import { rowsOf } from '../connections/query-result.js';
import type { Query } from '../dialect/sql-dialect.js';
import { existingTableDialectOf } from '../databases.js';
import { type ExistingTableColumns, type ExistingTableDialect } from '../dialect/existing-table-dialect.js';
import { existingTable } from './existing-table.js';

/**
 * Adds the columns that an older table of locks lacks, empty and not required, so that older programs go on as before.
 * For the `up` of a migration of yours; again = nothing. What is there already is left alone.
 * @throws LockConfigurationError for a name that is more than a name
 */
export async function addLockColumns(
  queryRunner: QueryRunner,
  { tableName, columns }: { readonly tableName: string; readonly columns: ExistingTableColumns },
): Promise<void> {
  const { options } = queryRunner.connection;
  const table = existingTable(options, { tableName, columns, abandonedAfterMs: Infinity });
  const query: Query = async (sql, parameters) => rowsOf(await queryRunner.query(sql, [...parameters]));
  await addMissingColumns(query, existingTableDialectOf(options.type), table.rows, table.columns);
}

/** Adds what is not there yet. */
export async function addMissingColumns(
  query: Query,
  dialect: ExistingTableDialect,
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
