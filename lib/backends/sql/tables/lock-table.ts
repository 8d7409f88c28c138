import { LockConfigurationError } from '../../../core/index.js';
import { catchFailure, hasErrorCode } from '../connections/database-error.js';
import { isTrue, type Query } from '../connections/query.js';
import type { TableContext } from '../connections/sql-database.js';
import type { ColumnType, SqlDialect } from '../dialect/sql-dialect.js';
import type { CommonOptions } from '../options.js';
import { unquoteTable, quoteTable } from './table-name.js';

export const DEFAULT_LOCK_TABLE = 'distributed_lock';
export const DEFAULT_FENCE_TABLE = 'distributed_lock_fence';

type TableKind = 'lock' | 'fence';
interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly constraintSql: string;
}

const PRIMARY_KEY_SQL = ' not null primary key';
const NOT_NULL_SQL = ' not null';

function getColumns({ columnTypes }: SqlDialect, kind: TableKind): readonly Column[] {
  const { key, owner, token, time, metadata, waiting } = columnTypes;
  const tokenColumn = { name: 'token', type: token, constraintSql: NOT_NULL_SQL };
  if (kind === 'fence') return [{ name: 'resource', type: key, constraintSql: PRIMARY_KEY_SQL }, tokenColumn];
  return [
    { name: 'lock_key', type: key, constraintSql: PRIMARY_KEY_SQL },
    { name: 'owner', type: owner, constraintSql: '' },
    tokenColumn,
    { name: 'expires_at', type: time, constraintSql: NOT_NULL_SQL },
    { name: 'acquired_at', type: time, constraintSql: NOT_NULL_SQL },
    { name: 'metadata', type: metadata, constraintSql: '' },
    ...(waiting ? [{ name: 'waiting', type: waiting, constraintSql: NOT_NULL_SQL }] : []),
  ];
}

export function createTableSql(dialect: SqlDialect, table: string, kind: TableKind): string {
  const columns = getColumns(dialect, kind).map(
    ({ name, type, constraintSql }) => `${name} ${type.sql}${constraintSql}`,
  );
  return `create table if not exists ${table} (${columns.join(', ')})${dialect.tableOptions[kind]}`;
}

/**
 * Returns the quoted name of the table. `ensureTableUsable` creates the table if `synchronize` is set, and throws if
 * the table cannot be used for locks.
 */
export function resolveLockTable(
  tableContext: TableContext,
  { tableName = DEFAULT_LOCK_TABLE, synchronize }: CommonOptions,
) {
  const table = quoteTable(tableContext, tableName);
  const ensureTableUsable = (query: Query): Promise<void> =>
    checkLockTable(query, tableContext, table, synchronize === true);
  return { table, ensureTableUsable };
}

/** @throws LockConfigurationError when several servers take writes, and the locks of one do not hold on the others */
export async function assertOnePrimary(query: Query, dialect: SqlDialect, strategy: 'row' | 'session'): Promise<void> {
  const cluster = await dialect.findMultiPrimaryCluster?.(query);
  if (cluster === undefined) return;
  throw new LockConfigurationError(
    `strategy '${strategy}' locks on one server only, and this one is in ${cluster}, where others take writes too: use ` +
      "strategy 'lease'",
    'strategy',
  );
}

async function checkLockTable(
  query: Query,
  tableContext: TableContext,
  table: string,
  shouldCreateTable: boolean,
): Promise<void> {
  const { dialect } = tableContext;
  // `checkColumns` reports this failure if the table is missing. Otherwise the failure does not matter.
  const creationFailure = shouldCreateTable
    ? await catchFailure(query(createTableSql(dialect, table, 'lock'), []))
    : undefined;
  await checkColumns(query, tableContext, table, 'lock', creationFailure);
  const hiddenRowsReason = await dialect.hiddenRowsWarning?.(query, table);
  if (hiddenRowsReason !== undefined) throw createHiddenRowsError(table, hiddenRowsReason);
  const noOpUpdateSql = `update ${table} set token = token where 1 = 0`;
  await assertWritable(query, dialect, noOpUpdateSql, (reason) =>
    createUnusableTableError(tableContext, table, 'lock', reason),
  );
}

/** @throws LockConfigurationError when the table of the fences is missing, or of another shape */
export function checkFenceTable(query: Query, tableContext: TableContext, table: string): Promise<void> {
  return checkColumns(query, tableContext, table, 'fence');
}

/**
 * Runs an update that changes no row, to find a missing right or a replica before a caller needs a lock.
 * @throws the error of `createError` for a missing right; DatabaseError when the server takes no writes
 */
export async function assertWritable(
  query: Query,
  dialect: SqlDialect,
  noOpUpdateSql: string,
  createError: (reason: string) => LockConfigurationError,
): Promise<void> {
  const failure = await catchFailure(query(noOpUpdateSql, []));
  if (failure) throw hasErrorCode(failure, dialect.tableErrorCodePattern) ? createError(failure.message) : failure;
  await dialect.assertPrimary?.(query);
}

async function checkColumns(
  query: Query,
  tableContext: TableContext,
  table: string,
  kind: TableKind,
  creationFailure?: Error,
): Promise<void> {
  const { dialect } = tableContext;
  const expectedColumns = getColumns(dialect, kind);
  const names = expectedColumns.map(({ name }) => name).join(', ');
  const selectFailure = await catchFailure(query(`select ${names} from ${table} where 1 = 0`, []));
  if (selectFailure && hasErrorCode(selectFailure, dialect.tableErrorCodePattern))
    throw createUnusableTableError(tableContext, table, kind, (creationFailure ?? selectFailure).message);
  if (selectFailure) throw selectFailure;
  const engine = await dialect.findUnfitEngine?.(query, table);
  if (engine !== undefined) throw createWrongShapeError(table, kind, `its engine is ${engine}, and locks need InnoDB`);
  const foundColumns = new Map((await dialect.describeColumns(query, table)).map((column) => [column['name'], column]));
  for (const { name, type: expectedType } of expectedColumns) {
    const type = describeType(foundColumns.get(name));
    if (!expectedType.pattern.test(type))
      throw createWrongShapeError(table, kind, `its column ${name} is ${type}, and must be ${expectedType.sql}`);
  }
}

function describeType(column: Awaited<ReturnType<Query>>[number] | undefined): string {
  if (!column) return 'not visible to us';
  return isTrue(column['primary_key']) ? `${String(column['type'])} primary key` : String(column['type']);
}

function createHiddenRowsError(table: string, reason: string): LockConfigurationError {
  // Without a role the policy would be for all, such as the anonymous users of Supabase.
  const advice = `create policy locks on ${unquoteTable(table)} to the_role_of_the_locks using (true)`;
  return new LockConfigurationError(
    `the table ${unquoteTable(table)} cannot be used for locks (${reason}): ${advice}`,
    'tableName',
  );
}

/** Returns an error that asks a person to drop the table: only a person can tell whether its rows still matter. */
function createWrongShapeError(table: string, kind: TableKind, reason: string): LockConfigurationError {
  const advice = 'Drop it and create it again, or give another tableName';
  return new LockConfigurationError(
    `the table ${unquoteTable(table)} cannot be used for ${kind}s (${reason}). ${advice}`,
    'tableName',
  );
}

function createUnusableTableError(
  { creationAdvice, synchronizeExample }: TableContext,
  table: string,
  kind: TableKind,
  reason: string,
): LockConfigurationError {
  const advice = kind === 'lock' ? `${creationAdvice}, or set ${synchronizeExample}` : creationAdvice;
  return new LockConfigurationError(
    `the table ${unquoteTable(table)} cannot be used for ${kind}s (${reason}). ${advice}`,
    'tableName',
  );
}
