import { LockConfigurationError } from '../../../core/index.js';
import type { Query } from '../connections/query.js';

/** The statements on the table of the fences, in a transaction of the application. */
export interface FenceStatements {
  /** Raises the resource's fence to `token`. Resolves to false when a newer token was there. */
  raise(query: Query, table: string, resource: string, token: bigint): Promise<boolean>;
  /**
   * Reads the newest token.
   * @param isShared whether others must not raise it until the transaction ends, which writers of SQLite and MySQL
   *   cannot anyway
   */
  newest(query: Query, table: string, resource: string, isShared?: boolean): Promise<bigint | undefined>;
  /**
   * For a transaction that may have read before. Returns statements that lock rows as they are now, where the database
   * may be set to roll the transaction back instead. Sends one statement.
   */
  seeingPresent?(query: Query): Promise<Query>;
  /**
   * Tells, before the fence is raised, whether the transaction's reads show the resource as it was before somebody else
   * raised the fence. Waits for the row, and keeps it locked. Absent where the database refuses such a transaction by
   * itself. Sends three statements.
   */
  isSnapshotOlder?(query: Query, table: string, resource: string): Promise<boolean>;
}

/**
 * The token in a row, which some clients have as bytes; `undefined` without a row.
 * @throws LockConfigurationError for a row without one: a fence that cannot be read must not pass for a good one
 */
export function tokenIn(row: Awaited<ReturnType<Query>>[number] | undefined): bigint | undefined {
  if (!row) return undefined;
  const token = String(row['token']);
  if (/^\d+$/u.test(token)) return BigInt(token);
  throw new LockConfigurationError(
    'the rows of this client have no columns by their names, or have them as another type than text: rowsAsArray, ' +
      'nestTables, typeCast and parsers of types may be why. Give a client without these',
    'tx',
  );
}
