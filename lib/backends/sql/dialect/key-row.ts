import type { HolderMetadata } from '../../../core/index.js';
import { DatabaseError } from '../connections/database-error.js';
import type { Query } from '../connections/query.js';

/** The row of a key for strategies whose lock is another one: it counts tokens and names the holder. */
export interface KeyRow {
  /** The key as the column has it. */
  columnOf(key: string): unknown;
  /** Rounded up to what the server can count. */
  ttlMs(askedMs: number): number;
  /** Makes the row where it is missing. Changes nothing else. */
  create(query: Query, table: string, key: string): Promise<void>;
  /** One row at most: `owner`, `token`, `metadata` and `since` are of whoever had the key last. */
  read(query: Query, table: string, key: string): ReturnType<Query>;
  /**
   * A new fencing token, `max(previous + 1, the server's clock in µs)`, and who asked for it; `undefined` without a
   * row. The caller has the key. The row shows the `owner`, where that is given.
   */
  raise(
    query: Query,
    table: string,
    key: string,
    metadata: HolderMetadata,
    owner?: string,
  ): Promise<bigint | undefined>;
}

/** Raises the token of a row, and makes the row first where it is missing. */
export async function raiseToken(
  row: KeyRow,
  query: Query,
  table: string,
  key: string,
  metadata: HolderMetadata,
  owner: string,
): Promise<bigint> {
  const token = await row.raise(query, table, key, metadata, owner);
  if (token !== undefined) return token;
  await row.create(query, table, key);
  const first = await row.raise(query, table, key, metadata, owner);
  if (first === undefined) throw new DatabaseError('the row of the key vanished', undefined);
  return first;
}
