import { packMetadata } from '../../../core/index.js';
import type { KeyRow } from '../dialect/key-row.js';
import { storedBytes } from '../tables/stored-key.js';
import { NOW, NOW_US } from './clock.js';
import { bytesOf, insertedId } from './driver.js';

export const mysqlKeyRow: KeyRow = {
  columnOf: storedBytes,
  ttlMs: (askedMs) => Math.ceil(askedMs / 1000) * 1000,

  async create(query, table, key) {
    await query(
      `insert ignore into ${table} (lock_key, token, expires_at, acquired_at) values (?, 0, ${NOW}, ${NOW})`,
      [storedBytes(key)],
    );
  },

  read: (query, table, key) =>
    query(
      `select cast(owner as char) as owner, cast(token as char) as token, cast(metadata as char) as metadata,
          timestampdiff(microsecond, '1970-01-01', acquired_at) / 1000 as since
       from ${table} where lock_key = ?`,
      [storedBytes(key)],
    ),

  async raise(query, table, key, metadata, owner) {
    const answer = await query(
      `update ${table} set token = last_insert_id(greatest(token + 1, ${NOW_US})), expires_at = ${NOW},
         acquired_at = ${NOW}, metadata = ?, owner = ?
       where lock_key = ?`,
      [bytesOf(packMetadata(metadata)), owner === undefined ? null : bytesOf(owner), storedBytes(key)],
    );
    return insertedId(answer);
  },
};
