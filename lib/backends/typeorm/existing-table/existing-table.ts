import type { DataSourceOptions } from 'typeorm';
import { LockConfigurationError, quote } from '../../../core/index.js';
import { dialectOf } from '../databases.js';
import type { ExistingTableDialect, ExistingTableColumns, ExistingTable } from '../dialect/existing-table-dialect.js';
import type { LeaseStatements } from '../dialect/sql-dialect.js';
import { assertIdentifier, assertTableName, quotedTable } from '../tables/table-name.js';

const DEFAULTS = { expiresAt: 'expires_at', token: 'token', metadata: 'metadata' };
const PARTS: ReadonlySet<string> = new Set(['key', 'owner', 'updatedAt', ...Object.keys(DEFAULTS)]);

/** @throws LockConfigurationError naming the option */
export function existingTable(
  dataSource: DataSourceOptions,
  given: {
    readonly tableName?: string | undefined;
    readonly columns: ExistingTableColumns;
    readonly abandonedAfterMs: number;
  },
): ExistingTable {
  const { tableName, abandonedAfterMs } = given;
  const refused = (why: string, option: string): LockConfigurationError => new LockConfigurationError(why, option);
  if (tableName === undefined)
    throw refused('columns are those of a table of yours: give its tableName too', 'tableName');
  assertTableName('tableName', tableName);
  const columns = { ...DEFAULTS, ...given.columns };
  assertIdentifier('columns.key', columns.key);
  assertIdentifier('columns.owner', columns.owner);
  for (const [part, name] of Object.entries(columns)) {
    if (!PARTS.has(part)) throw refused(`columns has no ${part}; it has ${[...PARTS].join(', ')}`, 'columns');
    assertIdentifier(`columns.${part}`, name);
  }
  const names = new Set(Object.values(columns).map((name) => name.toLowerCase()));
  if (names.size < Object.keys(columns).length) {
    throw refused(`columns must differ from each other; they were ${JSON.stringify(columns)}`, 'columns');
  }
  if (abandonedAfterMs !== Infinity && columns.updatedAt === undefined) {
    throw refused('abandonedAfterMs is counted from columns.updatedAt, which is missing', 'columns.updatedAt');
  }
  const rows = quotedTable(dialectOf(dataSource.type), dataSource, tableName);
  return { name: tableName, rows, columns, abandonedAfterMs, limits: undefined };
}

/** @throws LockConfigurationError when the column would keep another key than this one, or none */
function assertStorable({ columns, limits }: ExistingTable, key: string, owner: string): void {
  if (!limits) return;
  const refused = (why: string): LockConfigurationError =>
    new LockConfigurationError(`${quote(key)} does not fit into the column ${columns.key}: ${why}`, 'key', key);
  const length = Array.from(key).length;
  if (length > limits.keyCharacters)
    throw refused(`it has ${length} characters, and room is for ${limits.keyCharacters}`);
  if (!limits.writes.test(key)) throw refused('it has characters that the column cannot keep');
  if (owner.length > limits.ownerCharacters) throw refused(`${columns.owner} is too short for the owner's id`);
}

/** The statements of a lease in the table, for keys that it can keep. */
export function existingTableStatements(dialect: ExistingTableDialect, table: ExistingTable): LeaseStatements {
  const statements = dialect.statements(table);
  return {
    ...statements,
    async tryAcquire(query, name, lease) {
      // The first connection looks at the table when it is opened.
      if (!table.limits) await query('select 1', []);
      assertStorable(table, lease.key, lease.owner);
      return statements.tryAcquire(query, name, lease);
    },
  };
}
