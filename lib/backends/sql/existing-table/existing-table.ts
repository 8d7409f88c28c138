import { LockConfigurationError, quote } from '../../../core/index.js';
import type { ExistingTableColumns } from '../dialect/existing-table-types.js';
import type { LeaseColumns, LeaseStatements } from '../dialect/lease-statements.js';
import type { TableHome } from '../connections/sql-database.js';
import type { SqlDialect } from '../dialect/sql-dialect.js';
import { assertIdentifier, quotedTable } from '../tables/table-name.js';

const DEFAULTS = { expiresAt: 'expires_at', token: 'token', metadata: 'metadata' };
const PARTS: ReadonlySet<string> = new Set(['key', 'owner', 'updatedAt', ...Object.keys(DEFAULTS)]);

/** A table of locks that was there before. */
export interface ExistingTable {
  /** As it was given, for people; and so are the names of the columns. */
  readonly name: string;
  readonly names: ExistingTableColumns & typeof DEFAULTS;
  /** As statements have it. */
  readonly columns: LeaseColumns;
  /** Known once the table was looked at. */
  limits: TableLimits | undefined;
}

/** Keys beyond these limits would be stored as other keys. */
interface TableLimits {
  readonly keyCharacters: number;
  readonly ownerCharacters: number;
  /** Text that the column's character set can keep. */
  readonly writes: RegExp;
}

/** @throws LockConfigurationError naming the option */
export function existingTable(
  home: TableHome,
  given: {
    readonly tableName?: string | undefined;
    readonly columns: ExistingTableColumns;
    readonly abandonedAfterMs?: number | undefined;
  },
): ExistingTable {
  const { tableName, abandonedAfterMs = Infinity } = given;
  if (tableName === undefined) {
    throw new LockConfigurationError('columns are those of a table of yours: give its tableName too', 'tableName');
  }
  const { dialect } = home;
  const rows = quotedTable(home, tableName);
  const names = { ...DEFAULTS, ...given.columns };
  assertColumns(names);
  if (abandonedAfterMs !== Infinity && names.updatedAt === undefined) {
    const why = 'abandonedAfterMs is counted from columns.updatedAt, which is missing';
    throw new LockConfigurationError(why, 'columns.updatedAt');
  }
  const columns: LeaseColumns = {
    rows,
    key: dialect.quote(names.key),
    owner: dialect.quote(names.owner),
    token: dialect.quote(names.token),
    expiresAt: dialect.quote(names.expiresAt),
    metadata: dialect.quote(names.metadata),
    updatedAt: names.updatedAt === undefined ? undefined : dialect.quote(names.updatedAt),
    existing: { abandonedAfterMs },
  };
  return { name: tableName, names, columns, limits: undefined };
}

function assertColumns(columns: ExistingTableColumns): void {
  assertIdentifier('columns.key', columns.key);
  assertIdentifier('columns.owner', columns.owner);
  for (const [part, name] of Object.entries(columns)) {
    if (!PARTS.has(part)) refuse(`columns has no ${part}; it has ${[...PARTS].join(', ')}`);
    assertIdentifier(`columns.${part}`, name);
  }
  const names = new Set(Object.values(columns).map((name: string) => name.toLowerCase()));
  if (names.size === Object.keys(columns).length) return;
  refuse(`columns must differ from each other; they were ${JSON.stringify(columns)}`);
}

function refuse(why: string): never {
  throw new LockConfigurationError(why, 'columns');
}

/** @throws LockConfigurationError when the column would keep another key than this one, or none */
function assertStorable({ names, limits }: ExistingTable, key: string, owner: string): void {
  if (!limits) return;
  const refused = (why: string): LockConfigurationError =>
    new LockConfigurationError(`${quote(key)} does not fit into the column ${names.key}: ${why}`, 'key', key);
  const length = Array.from(key).length;
  if (length > limits.keyCharacters)
    throw refused(`it has ${length} characters, and room is for ${limits.keyCharacters}`);
  if (!limits.writes.test(key)) throw refused('it has characters that the column cannot keep');
  if (owner.length > limits.ownerCharacters) throw refused(`${names.owner} is too short for the owner's id`);
}

/** The statements of a lease in the table, for keys that it can keep. */
export function existingTableStatements(dialect: SqlDialect, table: ExistingTable): LeaseStatements {
  const statements = dialect.leases(table.columns);
  return {
    ...statements,
    async tryAcquire(query, lease) {
      // The first connection looks at the table when it is opened.
      if (!table.limits) await query('select 1', []);
      assertStorable(table, lease.key, lease.owner);
      return statements.tryAcquire(query, lease);
    },
  };
}
