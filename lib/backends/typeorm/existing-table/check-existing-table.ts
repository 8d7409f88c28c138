import { LockConfigurationError } from '../../../core/index.js';
import { failureOf } from '../connections/database-error.js';
import { assertWritable } from '../tables/lock-table.js';
import type { Query, SqlDialect } from '../dialect/sql-dialect.js';
import { addMissingColumns } from './add-lock-columns.js';
import { type ExistingTableDialect, type ExistingTable, quotedNames } from '../dialect/existing-table-dialect.js';

const PARTS = ['key', 'owner', 'expiresAt', 'token', 'metadata', 'updatedAt'] as const;

/** The length of an owner's id. */
const OWNER_CHARACTERS = 36;

/**
 * Makes sure that the table can keep our locks, and learns what its columns can keep. With `create`, adds what it lacks
 * first.
 * @throws LockConfigurationError naming the column
 */
export async function checkExistingTable(
  query: Query,
  dialect: ExistingTableDialect,
  table: ExistingTable,
  { create, database }: { readonly create: boolean; readonly database: SqlDialect },
): Promise<void> {
  // Another process may be doing the same, or this one may not be allowed to where nothing is missing.
  const failure = create
    ? (await failureOf(addMissingColumns(query, dialect, table.rows, table.columns)))?.message
    : undefined;
  const found = new Map((await dialect.describe(query, table.rows)).map((column) => [String(column['name']), column]));
  if (found.size === 0) throw unusable(table, 'columns.key', failure ?? 'it is missing, or not visible to us');
  const ours = new Set<string>();
  for (const part of PARTS) {
    const name = table.columns[part];
    if (name === undefined) continue;
    ours.add(name);
    const type: unknown = found.get(name)?.['type'];
    if (typeof type !== 'string') throw unusable(table, `columns.${part}`, failure ?? `its column ${name} is missing`);
    const expected = dialect.types[part];
    if (expected.test(type)) continue;
    throw unusable(table, `columns.${part}`, `its column ${name} is ${type}, which does not match ${expected}`);
  }
  const key = found.get(table.columns.key);
  if (!is(key?.['unique'])) {
    throw unusable(table, 'columns.key', `its column ${table.columns.key} has no unique index of its own`);
  }
  for (const [name, { required }] of found) {
    if (is(required) && !ours.has(name)) throw unusable(table, 'columns', `its column ${name} needs a default`);
  }
  const ownerCharacters = charactersOf(found.get(table.columns.owner));
  if (ownerCharacters < OWNER_CHARACTERS) {
    const why = `its column ${table.columns.owner} has room for ${ownerCharacters} characters, and needs ${OWNER_CHARACTERS}`;
    throw unusable(table, 'columns.owner', why);
  }
  const { rows, token } = quotedNames(table, dialect.quote);
  await assertWritable(query, database, `update ${rows} set ${token} = ${token} where 1 = 0`, (why) =>
    unusable(table, 'tableName', why),
  );
  table.limits = { keyCharacters: charactersOf(key), ownerCharacters, writes: dialect.writes(key?.['charset']) };
}

function unusable({ name }: ExistingTable, option: string, why: string): LockConfigurationError {
  return new LockConfigurationError(
    `the table ${name} cannot be used for locks (${why}). addLockColumns() of nestjs-distributed-lock/typeorm adds, in a ` +
      'migration, what such a table lacks; so does typeorm({ dataSource, synchronize: true })',
    option,
  );
}

/** `varchar(64)` holds 64. */
function charactersOf(column: Readonly<Record<string, unknown>> | undefined): number {
  const size = /\((?<size>\d+)\)/u.exec(String(column?.['type']))?.groups?.['size'];
  return size === undefined ? Infinity : Number(size);
}

/** A boolean, or a number, or one as text, as the driver has it. */
function is(flag: unknown): boolean {
  return flag === true || Number(flag) === 1;
}
