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
