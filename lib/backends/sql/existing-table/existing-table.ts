import { LockConfigurationError, quote } from '../../../core/index.js';
import type { ExistingTableColumns } from '../dialect/existing-table-types.js';
import type { LeaseColumns, LeaseStatements } from '../dialect/lease-statements.js';
import type { TableContext } from '../connections/sql-database.js';
import type { SqlDialect } from '../dialect/sql-dialect.js';
import { assertIdentifier, quoteTable } from '../tables/table-name.js';

const DEFAULT_COLUMN_NAMES = { expiresAt: 'expires_at', token: 'token', metadata: 'metadata' };
const COLUMN_OPTIONS: ReadonlySet<string> = new Set([
  'key',
  'owner',
  'updatedAt',
  ...Object.keys(DEFAULT_COLUMN_NAMES),
]);

/** A table of locks that older programs use, too. */
export interface ExistingTable {
  /** Table name as the options give it. */
  readonly name: string;
  /** Column names as the options give them, with the defaults. */
  readonly columnNames: ExistingTableColumns & typeof DEFAULT_COLUMN_NAMES;
  /** Quoted names, for statements. */
  readonly columns: LeaseColumns;
  /** `undefined` until the first connection has read the columns of the table. */
  limits: TableLimits | undefined;
}

/** Limits beyond which the database would store a key as another key, or not at all. */
interface TableLimits {
  readonly keyCharacters: number;
  readonly ownerCharacters: number;
  readonly storablePattern: RegExp;
}

/** @throws LockConfigurationError that names the option */
export function resolveExistingTable(
  tableContext: TableContext,
  options: {
    readonly tableName?: string | undefined;
    readonly columns: ExistingTableColumns;
    readonly abandonedAfterMs?: number | undefined;
  },
): ExistingTable {
  const { tableName, abandonedAfterMs = Infinity } = options;
  if (tableName === undefined) {
    throw new LockConfigurationError('columns are those of a table of yours: give its tableName too', 'tableName');
  }
  const { dialect } = tableContext;
  const table = quoteTable(tableContext, tableName);
  const columnNames = { ...DEFAULT_COLUMN_NAMES, ...options.columns };
  assertColumns(columnNames);
  if (abandonedAfterMs !== Infinity && columnNames.updatedAt === undefined) {
    const reason = 'abandonedAfterMs is counted from columns.updatedAt, which is missing';
    throw new LockConfigurationError(reason, 'columns.updatedAt');
  }
  const columns: LeaseColumns = {
    table,
    key: dialect.quote(columnNames.key),
    owner: dialect.quote(columnNames.owner),
    token: dialect.quote(columnNames.token),
    expiresAt: dialect.quote(columnNames.expiresAt),
    metadata: dialect.quote(columnNames.metadata),
    updatedAt: columnNames.updatedAt === undefined ? undefined : dialect.quote(columnNames.updatedAt),
    existingTable: { abandonedAfterMs },
  };
  return { name: tableName, columnNames, columns, limits: undefined };
}

function assertColumns(columns: ExistingTableColumns): void {
  assertIdentifier('columns.key', columns.key);
  assertIdentifier('columns.owner', columns.owner);
  for (const [columnOption, name] of Object.entries(columns)) {
    if (!COLUMN_OPTIONS.has(columnOption))
      throwColumnsError(`columns has no ${columnOption}; it has ${[...COLUMN_OPTIONS].join(', ')}`);
    assertIdentifier(`columns.${columnOption}`, name);
  }
  const names = new Set(Object.values(columns).map((name: string) => name.toLowerCase()));
  if (names.size === Object.keys(columns).length) return;
  throwColumnsError(`columns must differ from each other; they were ${JSON.stringify(columns)}`);
}

function throwColumnsError(reason: string): never {
  throw new LockConfigurationError(reason, 'columns');
}

/** @throws LockConfigurationError when the database would store this key as another key, or not at all */
function assertStorable({ columnNames, limits }: ExistingTable, key: string, owner: string): void {
  if (!limits) return;
  const createKeyError = (reason: string): LockConfigurationError =>
    new LockConfigurationError(`${quote(key)} does not fit into the column ${columnNames.key}: ${reason}`, 'key', key);
  const length = Array.from(key).length;
  if (length > limits.keyCharacters)
    throw createKeyError(`it has ${length} characters, and room is for ${limits.keyCharacters}`);
  if (!limits.storablePattern.test(key)) throw createKeyError('it has characters that the column cannot keep');
  if (owner.length > limits.ownerCharacters)
    throw createKeyError(`${columnNames.owner} is too short for the owner's id`);
}

export function createExistingTableStatements(dialect: SqlDialect, table: ExistingTable): LeaseStatements {
  const statements = dialect.leases(table.columns);
  return {
    ...statements,
    async tryAcquire(query, lease) {
      // This statement opens the first connection, on which `checkExistingTable` reads the limits.
      if (!table.limits) await query('select 1', []);
      assertStorable(table, lease.key, lease.owner);
      return statements.tryAcquire(query, lease);
    },
  };
}
