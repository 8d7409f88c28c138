import type { LeaseStatements, Query } from '../sql-dialect.js';
import type { MethodLockColumns, MethodLockTable } from './method-lock-table.js';

/** How a database keeps locks in a table that is not of our making. Names of its columns are quoted, as they are written. */
export interface MethodLockDialect {
  readonly quote: (name: string) => string;
  /**
   * The `name` and `type` of each column; whether it is `required`, so that an insert must give it a value; whether it is
   * `unique`, by an index of its own; and the `charset` of its text, where there are several.
   */
  describe(query: Query, table: string): ReturnType<Query>;
  /** What the columns' types must be, as `describe` has them. */
  readonly types: Readonly<Record<keyof MethodLockColumns, RegExp>>;
  /** The types of the columns that older programs have not got. */
  readonly added: Readonly<Record<'expiresAt' | 'token' | 'metadata', string>>;
  /** What text of a column of this character set can be. */
  writes(charset: unknown): RegExp;
  /** In `release` the row goes, as older programs take any row for a lock. */
  statements(table: MethodLockTable): LeaseStatements;
}
