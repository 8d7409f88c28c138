import { expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { dialectOf } from '../../lib/backends/typeorm/databases.js';
import { createTable, DEFAULT_FENCE_TABLE, DEFAULT_LOCK_TABLE } from '../../lib/backends/typeorm/tables/lock-table.js';

it.each([
  ['postgres', 'lock', DEFAULT_LOCK_TABLE],
  ['postgres', 'fence', DEFAULT_FENCE_TABLE],
  ['mysql', 'lock', DEFAULT_LOCK_TABLE],
  ['mysql', 'fence', DEFAULT_FENCE_TABLE],
] as const)('the page about SQL shows the table that is made on %s for a %s', (type, kind, table) => {
  const page = readFileSync('docs/backends/sql.md', 'utf8');
  expect(page).toContain(`${createTable(dialectOf(type), table, kind)};\n`);
});
