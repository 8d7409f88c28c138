import { packMetadata } from '../../../core/index.js';
import { NOW_SQL, NOW_MICROSECONDS_SQL } from './clock.js';
import { toStoredText } from '../tables/stored-key.js';
import type { KeyRowStatements } from '../dialect/key-row.js';

export const postgresKeyRow: KeyRowStatements = {
  toColumnValue: toStoredText,
  roundUpTtl: Math.ceil,

  async create(query, table, key) {
    await query(
      `insert into ${table} (lock_key, token, expires_at, acquired_at) values ($1, 0, ${NOW_SQL}, ${NOW_SQL})
       on conflict (lock_key) do nothing`,
      [toStoredText(key)],
    );
  },

  read: (query, table, key) =>
    query(
      `select owner, token::text as token, metadata, (extract(epoch from acquired_at) * 1000)::text as since from ${table} where lock_key = $1`,
      [toStoredText(key)],
    ),

  async writeHolder(query, table, key, metadata, owner) {
    const [row] = await query(
      `update ${table} set token = greatest(token + 1, ${NOW_MICROSECONDS_SQL}), expires_at = ${NOW_SQL}, acquired_at = ${NOW_SQL}, metadata = $2, owner = $3
       where lock_key = $1 returning token::text as token`,
      [toStoredText(key), packMetadata(metadata), owner ?? null],
    );
    return typeof row?.['token'] === 'string' ? BigInt(row['token']) : undefined;
  },
};
