import { LockConfigurationError } from '../../../core/index.js';
import { failureOf } from '../connections/database-error.js';
import { isTrue, type Query } from '../connections/query.js';
import type { SqlDialect } from '../dialect/sql-dialect.js';
import { assertWritable } from '../tables/lock-table.js';
import { addMissingColumns } from './add-missing-columns.js';
import type { ExistingTable } from './existing-table.js';

/** The length of an owner's id. */
const OWNER_CHARACTERS = 36;

/**
 * Makes sure that the table can keep our locks, and learns what its columns can keep. With `create`, adds what it lacks
 * first.
 * @throws LockConfigurationError naming the column
 */
export async function checkExistingTable(
  query: Query,
  dialect: SqlDialect,
  table: ExistingTable,
  create: boolean,
): Promise<void> {
  // Another process may be doing the same, or this one may not be allowed to where nothing is missing.
  const failure = create ? (await failureOf(addMissingColumns(query, dialect, table)))?.message : undefined;
  const { columns, names } = table;
  const found = new Map(
    (await dialect.describe(query, columns.rows)).map((column) => [String(column['name']), column]),
  );
  if (found.size === 0) throw unusable(table, 'columns.key', failure ?? 'it is missing, or not visible to us');
  const ours = new Set<string>();
  for (const [part, pattern, types] of patternsOf(dialect)) {
    const name = names[part];
    if (name === undefined) continue;
    ours.add(name);
    const type: unknown = found.get(name)?.['type'];
    if (typeof type !== 'string') throw unusable(table, `columns.${part}`, failure ?? `its column ${name} is missing`);
    if (pattern.test(type)) continue;
    throw unusable(table, `columns.${part}`, `its column ${name} is ${type}, and must be ${types}`);
  }
  const key = found.get(names.key);
  if (!isTrue(key?.['unique'])) {
    throw unusable(table, 'columns.key', `its column ${names.key} has no unique index of its own`);
  }
  for (const [name, { required }] of found) {
    if (isTrue(required) && !ours.has(name)) throw unusable(table, 'columns', `its column ${name} needs a default`);
  }
  const ownerCharacters = charactersOf(found.get(names.owner));
  if (ownerCharacters < OWNER_CHARACTERS) {
    const why = `its column ${names.owner} has room for ${ownerCharacters} characters, and needs ${OWNER_CHARACTERS}`;
    throw unusable(table, 'columns.owner', why);
  }
  const change = `update ${columns.rows} set ${columns.token} = ${columns.token} where 1 = 0`;
  await assertWritable(query, dialect, change, (why) => unusable(table, 'tableName', why));
  const writes = dialect.existingTable.writes(key?.['charset']);
  table.limits = { keyCharacters: charactersOf(key), ownerCharacters, writes };
}

function patternsOf({ types, existingTable: { text, updatedAt } }: SqlDialect) {
  return [
    ['key', text, 'text'],
    ['owner', text, 'text'],
    ['expiresAt', types.time[1], types.time[0]],
    ['token', types.token[1], types.token[0]],
    ['metadata', types.metadata[1], types.metadata[0]],
    ['updatedAt', updatedAt, 'a date and time'],
  ] as const;
}

function unusable({ name }: ExistingTable, option: string, why: string): LockConfigurationError {
  return new LockConfigurationError(
    `the table ${name} cannot be used for locks (${why}). addLockColumns() of nestjs-distributed-lock/typeorm adds, in a ` +
      'migration, what such a table lacks; so does synchronize: true',
    option,
  );
}

/** `varchar(64)` holds 64. */
function charactersOf(column: Readonly<Record<string, unknown>> | undefined): number {
  const size = /\((?<size>\d+)\)/u.exec(String(column?.['type']))?.groups?.['size'];
  return size === undefined ? Infinity : Number(size);
}
