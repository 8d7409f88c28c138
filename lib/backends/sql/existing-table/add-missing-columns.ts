import type { Query } from '../connections/query.js';
import type { SqlDialect } from '../dialect/sql-dialect.js';
import type { ExistingTable } from './existing-table.js';

export async function addMissingColumns(
  query: Query,
  dialect: SqlDialect,
  { columns: { table }, columnNames }: ExistingTable,
): Promise<void> {
  const readColumnNames = async (): Promise<ReadonlySet<unknown>> =>
    new Set((await dialect.describeColumns(query, table)).map(({ name }) => name));
  const existingNames = await readColumnNames();
  const { time, token, metadata } = dialect.columnTypes;
  const lockColumns = [
    { column: columnNames.expiresAt, type: time },
    { column: columnNames.token, type: token },
    { column: columnNames.metadata, type: metadata },
  ];
  for (const { column, type } of lockColumns) {
    if (existingNames.has(column)) continue;
    const addColumnSql = `add column ${dialect.quote(column)} ${type.sql} null`;
    try {
      await query(`alter table ${table} ${addColumnSql}`, []);
    } catch (error) {
      // Another process may have added the column meanwhile.
      if (!(await readColumnNames()).has(column)) throw error;
    }
  }
}
