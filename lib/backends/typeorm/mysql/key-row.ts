import { type HolderMetadata, packMetadata } from '../../../core/index.js';
import { bytesOf, insertedId } from './driver.js';
import { NOW, NOW_US } from './clock.js';
import type { Query } from '../dialect/sql-dialect.js';
import { storedBytes } from '../tables/stored-key.js';
import type { KeyRow } from '../dialect/key-row.js';

export const mysqlKeyRow: KeyRow = {
  columnOf: storedBytes,

  async create(query, table, key) {
    await query(
      `insert ignore into ${table} (lock_key, token, expires_at, acquired_at) values (?, 0, ${NOW}, ${NOW})`,
      [storedBytes(key)],
    );
  },

  raise: (query, table, key, metadata) => raiseFor(null, query, table, key, metadata),
};

/** `KeyRow.raise` with an owner, whom a transaction shows to those who read what is not committed. */
export async function raiseFor(
  owner: string | null,
  query: Query,
  table: string,
  key: string,
  metadata: HolderMetadata,
): Promise<bigint | undefined> {
  const answer = await query(
    `update ${table} set token = last_insert_id(greatest(token + 1, ${NOW_US})), expires_at = ${NOW},
       acquired_at = ${NOW}, metadata = ?, owner = ?
     where lock_key = ?`,
    [bytesOf(packMetadata(metadata)), owner === null ? null : bytesOf(owner), storedBytes(key)],
  );
  return insertedId(answer);
}
