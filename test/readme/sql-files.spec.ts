import { readFileSync } from 'node:fs';
import { mysqlDialect } from '../../lib/backends/sql/mysql/dialect.js';
import { postgresDialect } from '../../lib/backends/sql/postgres/dialect.js';
import { createTableSql, DEFAULT_FENCE_TABLE, DEFAULT_LOCK_TABLE } from '../../lib/backends/sql/tables/lock-table.js';

it.each([
  ['postgres', 'lock', DEFAULT_LOCK_TABLE],
  ['postgres', 'fence', DEFAULT_FENCE_TABLE],
  ['mysql', 'lock', DEFAULT_LOCK_TABLE],
  ['mysql', 'fence', DEFAULT_FENCE_TABLE],
] as const)('the page about SQL shows the table that is made on %s for a %s', (type, kind, table) => {
  const page = readFileSync('docs/backends/sql.md', 'utf8');
  expect(page).toContain(`${createTableSql(type === 'postgres' ? postgresDialect : mysqlDialect, table, kind)};\n`);
});
