import { LockConfigurationError } from '../../../core/index.js';
import type { Query } from '../connections/query.js';

export interface FenceStatements {
  /** Raises the resource's fence to `token`. Resolves to false when a newer token was there. */
  raise(query: Query, table: string, resource: string, token: bigint): Promise<boolean>;
  /**
   * @param isShared whether a shared lock keeps others from raising the fence until the transaction ends; SQLite and
   *   MySQL always prevent that
   */
  readNewestToken(query: Query, table: string, resource: string, isShared?: boolean): Promise<bigint | undefined>;
  /**
   * Resolves to a query that can lock rows which changed after the transaction's first read. MariaDB with
   * `innodb_snapshot_isolation` would otherwise roll the transaction back.
   */
  createCurrentReadQuery?(query: Query): Promise<Query>;
  /**
   * Resolves to whether the transaction's reads show the resource as it was before somebody else raised the fence.
   * Waits for the row, and keeps it locked. Absent where the database itself refuses such a transaction.
   */
  isSnapshotStale?(query: Query, table: string, resource: string): Promise<boolean>;
}

/**
 * Some clients return the token as bytes.
 * @throws LockConfigurationError for a row whose token cannot be read, because an unread fence protects nothing
 */
export function parseFenceToken(row: Awaited<ReturnType<Query>>[number] | undefined): bigint | undefined {
  if (!row) return undefined;
  const token = String(row['token']);
  if (/^\d+$/u.test(token)) return BigInt(token);
  throw new LockConfigurationError(
    'the rows of this client have no columns by their names, or have them as another type than text: rowsAsArray, ' +
      'nestTables, typeCast and parsers of types may be why. Give a client without these',
    'tx',
  );
}
