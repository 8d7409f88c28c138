import { LockConfigurationError } from '../../../core/index.js';
import { catchFailure } from '../connections/database-error.js';
import { isTrue, type Query } from '../connections/query.js';
import type { SqlDialect } from '../dialect/sql-dialect.js';
import { assertWritable } from '../tables/lock-table.js';
import { addMissingColumns } from './add-missing-columns.js';
import type { ExistingTable } from './existing-table.js';

const OWNER_ID_CHARACTERS = 36;

/**
 * Checks the columns of the table, and records their limits in `table.limits`.
 * @throws LockConfigurationError that names the column
 */
export async function checkExistingTable(
  query: Query,
  dialect: SqlDialect,
  table: ExistingTable,
  shouldAddMissingColumns: boolean,
): Promise<void> {
  // A failure matters only where a column is still missing afterwards.
  const additionErrorMessage = shouldAddMissingColumns
    ? (await catchFailure(addMissingColumns(query, dialect, table)))?.message
    : undefined;
  const { columns, columnNames } = table;
  const foundColumns = new Map(
    (await dialect.describeColumns(query, columns.table)).map((column) => [String(column['name']), column]),
  );
  if (foundColumns.size === 0)
    throw createUnusableTableError(table, 'columns.key', additionErrorMessage ?? 'it is missing, or not visible to us');
  const lockColumnNames = new Set<string>();
  for (const { columnOption, pattern, expectedType } of getColumnPatterns(dialect)) {
    const name = columnNames[columnOption];
    if (name === undefined) continue;
    lockColumnNames.add(name);
    const type: unknown = foundColumns.get(name)?.['type'];
    if (typeof type !== 'string')
      throw createUnusableTableError(
        table,
        `columns.${columnOption}`,
        additionErrorMessage ?? `its column ${name} is missing`,
      );
    if (pattern.test(type)) continue;
    throw createUnusableTableError(
      table,
      `columns.${columnOption}`,
      `its column ${name} is ${type}, and must be ${expectedType}`,
    );
  }
  const keyColumn = foundColumns.get(columnNames.key);
  if (!isTrue(keyColumn?.['unique'])) {
    throw createUnusableTableError(
      table,
      'columns.key',
      `its column ${columnNames.key} has no unique index of its own`,
    );
  }
  for (const [name, { required }] of foundColumns) {
    if (isTrue(required) && !lockColumnNames.has(name))
      throw createUnusableTableError(table, 'columns', `its column ${name} needs a default`);
  }
  const ownerCharacters = getMaxCharacters(foundColumns.get(columnNames.owner));
  if (ownerCharacters < OWNER_ID_CHARACTERS) {
    const reason = `its column ${columnNames.owner} has room for ${ownerCharacters} characters, and needs ${OWNER_ID_CHARACTERS}`;
    throw createUnusableTableError(table, 'columns.owner', reason);
  }
  const noOpUpdateSql = `update ${columns.table} set ${columns.token} = ${columns.token} where 1 = 0`;
  await assertWritable(query, dialect, noOpUpdateSql, (reason) => createUnusableTableError(table, 'tableName', reason));
  const storablePattern = dialect.existingTable.getStorablePattern(keyColumn?.['charset']);
  table.limits = { keyCharacters: getMaxCharacters(keyColumn), ownerCharacters, storablePattern };
}

function getColumnPatterns({ columnTypes, existingTable: { textTypePattern, updatedAtTypePattern } }: SqlDialect) {
  return [
    { columnOption: 'key', pattern: textTypePattern, expectedType: 'text' },
    { columnOption: 'owner', pattern: textTypePattern, expectedType: 'text' },
    { columnOption: 'expiresAt', pattern: columnTypes.time.pattern, expectedType: columnTypes.time.sql },
    { columnOption: 'token', pattern: columnTypes.token.pattern, expectedType: columnTypes.token.sql },
    { columnOption: 'metadata', pattern: columnTypes.metadata.pattern, expectedType: columnTypes.metadata.sql },
    { columnOption: 'updatedAt', pattern: updatedAtTypePattern, expectedType: 'a date and time' },
  ] as const;
}

function createUnusableTableError({ name }: ExistingTable, option: string, reason: string): LockConfigurationError {
  return new LockConfigurationError(
    `the table ${name} cannot be used for locks (${reason}). addLockColumns() of nestjs-distributed-lock/typeorm adds, in a ` +
      'migration, what such a table lacks; so does synchronize: true',
    option,
  );
}

/** Returns 64 for `varchar(64)`, and Infinity for a type without a length. */
function getMaxCharacters(column: Readonly<Record<string, unknown>> | undefined): number {
  const size = /\((?<size>\d+)\)/u.exec(String(column?.['type']))?.groups?.['size'];
  return size === undefined ? Infinity : Number(size);
}
