import type { Query } from '../connections/query.js';
import type { SqlDialect } from '../dialect/sql-dialect.js';
import type { ExistingTable } from './existing-table.js';

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
