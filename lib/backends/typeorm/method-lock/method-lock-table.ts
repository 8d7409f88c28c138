import type { DataSourceOptions } from 'typeorm';
import { LockConfigurationError, quote } from '../../../core/index.js';
import { dialectOf } from '../databases.js';
import { assertIdentifier, assertTableName, quotedTable } from '../table-name.js';

/**
 * The columns of a table of locks that was there before: one row for each method that somebody has locked, and none for the
 * others. What such a table lacks can be added by `addLockColumns`; older programs' rows and inserts stay valid.
 */
export interface MethodLockColumns {
  /** What is locked, such as `method_name`: text, with a unique index of its own. */
  key: string;
  /** Who has it, such as `client_id`: text for 36 characters or more. */
  owner: string;
  /** When the row was written last, as a date and time. Kept up to date where it is named. */
  updatedAt?: string;
  /** Until when the row counts. Empty in rows of older programs. @default 'expires_at' */
  expiresAt?: string;
  /** The fencing token. @default 'token' */
  token?: string;
  /** What the holder says about itself. @default 'metadata' */
  metadata?: string;
}

/** Where the rows are, for statements. */
export interface MethodLockTable {
  /** As it was given, for people. */
  readonly name: string;
  /** As statements have it. */
  readonly rows: string;
  readonly columns: MethodLockColumns & { expiresAt: string; token: string; metadata: string };
  /** Rows without an expiry are over so long after `updatedAt`. */
  readonly abandonedAfterMs: number;
  /** Known once the table was looked at. */
  limits: TableLimits | undefined;
}

/** What a key must be, or the column would keep another one. */
export interface TableLimits {
  readonly keyCharacters: number;
  readonly ownerCharacters: number;
  /** What the column's character set has. */
  readonly writes: RegExp;
}

const DEFAULTS = { expiresAt: 'expires_at', token: 'token', metadata: 'metadata' };
const PARTS: ReadonlySet<string> = new Set(['key', 'owner', 'updatedAt', ...Object.keys(DEFAULTS)]);

/** @throws LockConfigurationError naming the option */
export function methodLockTable(
  dataSource: DataSourceOptions,
  given: {
    readonly tableName?: string | undefined;
    readonly columns: MethodLockColumns;
    readonly abandonedAfterMs: number;
  },
): MethodLockTable {
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

/** The names as statements write them. `touch` has `updatedAt` where there is one; `all` are those of an insert, in this order. */
export function quotedNames({ rows, columns }: MethodLockTable, quoteName: (name: string) => string) {
  const touch = columns.updatedAt === undefined ? [] : [quoteName(columns.updatedAt)];
  const required = {
    key: quoteName(columns.key),
    owner: quoteName(columns.owner),
    token: quoteName(columns.token),
    expiresAt: quoteName(columns.expiresAt),
    metadata: quoteName(columns.metadata),
  };
  const all = [...Object.values(required), ...touch].join(', ');
  return { ...required, rows, updatedAt: touch[0], touch, all };
}

/** @throws LockConfigurationError when the column would keep another key than this one, or none */
export function assertStorable({ columns, limits }: MethodLockTable, key: string, owner: string): void {
  if (!limits) return;
  const refused = (why: string): LockConfigurationError =>
    new LockConfigurationError(`${quote(key)} does not fit into the column ${columns.key}: ${why}`, 'key', key);
  const length = Array.from(key).length;
  if (length > limits.keyCharacters)
    throw refused(`it has ${length} characters, and room is for ${limits.keyCharacters}`);
  if (!limits.writes.test(key)) throw refused('it has characters that the column cannot keep');
  if (owner.length > limits.ownerCharacters) throw refused(`${columns.owner} is too short for the owner's id`);
}
