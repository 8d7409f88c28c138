import { packMetadata } from '../../../core/index.js';
import type { KeyRowStatements } from '../dialect/key-row.js';
import { toStoredBytes } from '../tables/stored-key.js';
import { NOW_SQL, NOW_MICROSECONDS_SQL } from './clock.js';
import { decodeTexts, getLastInsertId, textBytesSql, toBytes } from './driver.js';

export const mysqlKeyRow: KeyRowStatements = {
  toColumnValue: toStoredBytes,
  roundUpTtl: (requestedMs) => Math.ceil(requestedMs / 1000) * 1000,

  async create(query, table, key) {
    await query(
      `insert ignore into ${table} (lock_key, token, expires_at, acquired_at) values (?, 0, ${NOW_SQL}, ${NOW_SQL})`,
      [toStoredBytes(key)],
    );
  },

  async read(query, table, key) {
    const rows = await query(
      `select ${textBytesSql('owner')} as owner, cast(token as char) as token, ${textBytesSql('metadata')} as metadata,
          timestampdiff(microsecond, '1970-01-01', acquired_at) / 1000 as since
       from ${table} where lock_key = ?`,
      [toStoredBytes(key)],
    );
    return decodeTexts(rows);
  },

  async writeHolder(query, table, key, metadata, owner) {
    const answer = await query(
      `update ${table} set token = last_insert_id(greatest(token + 1, ${NOW_MICROSECONDS_SQL})), expires_at = ${NOW_SQL},
         acquired_at = ${NOW_SQL}, metadata = ?, owner = ?
       where lock_key = ?`,
      [toBytes(packMetadata(metadata)), owner === undefined ? null : toBytes(owner), toStoredBytes(key)],
    );
    return getLastInsertId(answer);
  },
};
