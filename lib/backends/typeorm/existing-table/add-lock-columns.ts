import type { QueryRunner } from 'typeorm';
import { type Query, queryOn } from '../connections/query.js';
import { dialectOf } from '../databases.js';
import type { ExistingTableColumns } from '../dialect/existing-table-types.js';
import type { SqlDialect } from '../dialect/sql-dialect.js';
import { type ExistingTable, existingTable } from './existing-table.js';

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
  const dialect = dialectOf(options.type);
  await addMissingColumns(queryOn(queryRunner), dialect, existingTable(dialect, options, { tableName, columns }));
}

/** Adds what is not there yet. */
export async function addMissingColumns(
  query: Query,
  dialect: SqlDialect,
  { columns: { rows }, names }: ExistingTable,
): Promise<void> {
  const present = async (): Promise<ReadonlySet<unknown>> =>
    new Set((await dialect.describe(query, rows)).map(({ name }) => name));
  const found = await present();
  const { time, token, metadata } = dialect.types;
  const wanted = [[names.expiresAt, time] as const, [names.token, token] as const, [names.metadata, metadata] as const];
  for (const [column, [type]] of wanted) {
    if (found.has(column)) continue;
    const change = `add column ${dialect.quote(column)} ${type} null`;
    try {
      await query(`alter table ${rows} ${change}`, []);
    } catch (error) {
      // Another process may have been faster.
      if (!(await present()).has(column)) throw error;
    }
  }
}
