import type { LeaseStatements, Query } from './sql-dialect.js';

/**
 * The columns of a table of locks that was there before: one row for each method that somebody has locked, and none for
 * the others. What such a table lacks can be added by `addLockColumns`; older programs' rows and inserts stay valid.
 */
export interface ExistingTableColumns {
  /** The locked name, such as `method_name`: text, with a unique index of its own. */
  key: string;
  /** The holder's id, such as `client_id`: text for 36 characters or more. */
  owner: string;
  /** When the row was written last, as a date and time. Kept up to date where it is named. */
  updatedAt?: string;
  /** Until when the row counts. Empty in rows of older programs. @default 'expires_at' */
  expiresAt?: string;
  /** The fencing token. @default 'token' */
  token?: string;
  /** Describes the holder. @default 'metadata' */
  metadata?: string;
}

/** Where the rows are, for statements. */
export interface ExistingTable {
  /** As it was given, for people. */
  readonly name: string;
  /** As statements have it. */
  readonly rows: string;
  readonly columns: ExistingTableColumns & { expiresAt: string; token: string; metadata: string };
  /** Rows without an expiry end this long after `updatedAt`. */
  readonly abandonedAfterMs: number;
  /** Known once the table was looked at. */
  limits: TableLimits | undefined;
}

/** Keys beyond these limits would be stored as other keys. */
export interface TableLimits {
  readonly keyCharacters: number;
  readonly ownerCharacters: number;
  /** Text that the column's character set can keep. */
  readonly writes: RegExp;
}

/** The statements for a table of the application's own. Names of its columns are quoted. */
export interface ExistingTableDialect {
  readonly quote: (name: string) => string;
  /**
   * The `name` and `type` of each column; whether it is `required`, so that an insert must give it a value; whether it
   * is `unique`, by an index of its own; and the `charset` of its text, where there are several.
   */
  describe(query: Query, table: string): ReturnType<Query>;
  /** Patterns of the columns' types, as `describe` has them. */
  readonly types: Readonly<Record<keyof ExistingTableColumns, RegExp>>;
  /** The types of the columns that older programs have not got. */
  readonly added: Readonly<Record<'expiresAt' | 'token' | 'metadata', string>>;
  /** Text that a column of this character set can keep. */
  writes(charset: unknown): RegExp;
  /** In `release` the row goes, as older programs take any row for a lock. */
  statements(table: ExistingTable): LeaseStatements;
}

/** The quoted names. `touch` has `updatedAt` where there is one; `all` are those of an insert, in order. */
export function quotedNames({ rows, columns }: ExistingTable, quoteName: (name: string) => string) {
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
