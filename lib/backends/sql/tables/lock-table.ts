import { LockConfigurationError } from '../../../core/index.js';
import { failureOf, isAnswer } from '../connections/database-error.js';
import { isTrue, type Query } from '../connections/query.js';
import type { TableHome } from '../connections/sql-database.js';
import type { ColumnType, SqlDialect } from '../dialect/sql-dialect.js';
import type { CommonOptions } from '../options.js';
import { plainTable, quotedTable } from './table-name.js';

export const DEFAULT_LOCK_TABLE = 'distributed_lock';
export const DEFAULT_FENCE_TABLE = 'distributed_lock_fence';

type Kind = 'lock' | 'fence';
type Column = readonly [name: string, type: ColumnType, rest: string];

const KEY = ' not null primary key';
const REQUIRED = ' not null';

function columnsOf({ types }: SqlDialect, kind: Kind): readonly Column[] {
  const token = ['token', types.token, REQUIRED] as const;
  if (kind === 'fence') return [['resource', types.key, KEY], token];
  return [
    ['lock_key', types.key, KEY],
    ['owner', types.owner, ''],
    token,
    ['expires_at', types.time, REQUIRED],
    ['acquired_at', types.time, REQUIRED],
    ['metadata', types.metadata, ''],
    ...(types.waiting ? [['waiting', types.waiting, REQUIRED] as const] : []),
  ];
}

export function createTable(dialect: SqlDialect, table: string, kind: Kind): string {
  const columns = columnsOf(dialect, kind).map(([name, [type], rest]) => `${name} ${type}${rest}`);
  return `create table if not exists ${table} (${columns.join(', ')})${dialect.tableOptions[kind]}`;
}

/** The table that the options name. `check` makes sure that it is there, and the one that we know. */
export function lockTable(home: TableHome, { tableName = DEFAULT_LOCK_TABLE, synchronize }: CommonOptions) {
  const table = quotedTable(home, tableName);
  const check = (query: Query): Promise<void> => checkLockTable(query, home, table, synchronize === true);
  return { table, check };
}

/** @throws LockConfigurationError when locks of one server do not exclude the holders on others */
export async function assertOnePrimary(query: Query, dialect: SqlDialect, strategy: 'row' | 'session'): Promise<void> {
  const cluster = await dialect.clusterOfPrimaries?.(query);
  if (cluster === undefined) return;
  throw new LockConfigurationError(
    `strategy '${strategy}' locks on one server only, and this one is in ${cluster}, where others take writes too: use ` +
      "strategy 'lease'",
    'strategy',
  );
}

/** With `create`, makes it where it is missing. */
async function checkLockTable(query: Query, home: TableHome, table: string, create: boolean): Promise<void> {
  const { dialect } = home;
  // Another process may create it at the same time, or this one may not be allowed to where it is there already.
  const failure = create ? await failureOf(query(createTable(dialect, table, 'lock'), [])) : undefined;
  await checkColumns(query, home, table, 'lock', failure);
  const hidden = await dialect.hiddenRows?.(query, table);
  if (hidden !== undefined) throw unreachable(table, hidden);
  const change = `update ${table} set token = token where 1 = 0`;
  await assertWritable(query, dialect, change, (why) => unusable(home, table, 'lock', why));
}

/** @throws LockConfigurationError when the table of the fences is missing, or of another shape */
export function checkFenceTable(query: Query, home: TableHome, table: string): Promise<void> {
  return checkColumns(query, home, table, 'fence');
}

/**
 * Runs `change`, which changes nothing: a right that is missing, or a replica, is found before somebody needs a lock.
 * @throws what `refusal` makes of a right that is missing; DatabaseError when the server takes no writes
 */
export async function assertWritable(
  query: Query,
  dialect: SqlDialect,
  change: string,
  refusal: (why: string) => LockConfigurationError,
): Promise<void> {
  const failure = await failureOf(query(change, []));
  if (failure) throw isAnswer(failure, dialect.aboutTable) ? refusal(failure.message) : failure;
  await dialect.assertPrimary?.(query);
}

/** @param failure of the attempt to create the table, which matters where it is missing */
async function checkColumns(query: Query, home: TableHome, table: string, kind: Kind, failure?: Error): Promise<void> {
  const { dialect } = home;
  const expected = columnsOf(dialect, kind);
  const names = expected.map(([name]) => name).join(', ');
  const missing = await failureOf(query(`select ${names} from ${table} where 1 = 0`, []));
  if (missing && isAnswer(missing, dialect.aboutTable)) throw unusable(home, table, kind, (failure ?? missing).message);
  if (missing) throw missing;
  const engine = await dialect.unfitEngine?.(query, table);
  if (engine !== undefined) throw misshapen(table, kind, `its engine is ${engine}, and locks need InnoDB`);
  const found = new Map((await dialect.describe(query, table)).map((column) => [column['name'], column]));
  for (const [name, [sql, pattern]] of expected) {
    const type = shownType(found.get(name));
    if (!pattern.test(type)) throw misshapen(table, kind, `its column ${name} is ${type}, and must be ${sql}`);
  }
}

function shownType(column: Awaited<ReturnType<Query>>[number] | undefined): string {
  if (!column) return 'not visible to us';
  return isTrue(column['primary_key']) ? `${String(column['type'])} primary key` : String(column['type']);
}

function unreachable(table: string, why: string): LockConfigurationError {
  const advice = `create policy locks on ${plainTable(table)} using (true)`;
  return new LockConfigurationError(
    `the table ${plainTable(table)} cannot be used for locks (${why}): ${advice}`,
    'tableName',
  );
}

/** A person has to drop the table, who can say whether its rows still matter. */
function misshapen(table: string, kind: Kind, why: string): LockConfigurationError {
  const advice = 'Drop it and create it again, or give another tableName';
  return new LockConfigurationError(
    `the table ${plainTable(table)} cannot be used for ${kind}s (${why}). ${advice}`,
    'tableName',
  );
}

function unusable(
  { howToCreate, synchronizing }: TableHome,
  table: string,
  kind: Kind,
  why: string,
): LockConfigurationError {
  const advice = kind === 'lock' ? `${howToCreate}, or set ${synchronizing}` : howToCreate;
  return new LockConfigurationError(
    `the table ${plainTable(table)} cannot be used for ${kind}s (${why}). ${advice}`,
    'tableName',
  );
}
