import type { HolderMetadata } from '../../../core/index.js';
import { DatabaseError } from '../connections/database-error.js';
import type { Query } from '../connections/query.js';

/**
 * Statements on a key's row, for the strategies `row` and `session`. The row keeps the last fencing token and the last
 * holder. The key itself is protected by a lock of the server: on the row, or of the session.
 */
export interface KeyRowStatements {
  toColumnValue(key: string): unknown;
  /** Rounds a TTL up to the unit in which the server counts. */
  roundUpTtl(requestedMs: number): number;
  create(query: Query, table: string, key: string): Promise<void>;
  /** Reads `owner`, `token`, `metadata` and `since` of the last holder, if there is a row. */
  read(query: Query, table: string, key: string): ReturnType<Query>;
  /**
   * Writes a new fencing token and the holder into the row. The token is `max(previous + 1, the server's clock in µs)`.
   * Resolves to the token, or to `undefined` where the row is missing. The caller must hold the key.
   */
  writeHolder(
    query: Query,
    table: string,
    key: string,
    metadata: HolderMetadata,
    owner?: string,
  ): Promise<bigint | undefined>;
}

/** Raises the token of the key's row, and creates a missing row first. */
export async function raiseToken(
  keyRow: KeyRowStatements,
  query: Query,
  table: string,
  key: string,
  metadata: HolderMetadata,
  owner: string,
): Promise<bigint> {
  const token = await keyRow.writeHolder(query, table, key, metadata, owner);
  if (token !== undefined) return token;
  await keyRow.create(query, table, key);
  const firstToken = await keyRow.writeHolder(query, table, key, metadata, owner);
  if (firstToken === undefined) throw new DatabaseError('the row of the key vanished', undefined);
  return firstToken;
}
