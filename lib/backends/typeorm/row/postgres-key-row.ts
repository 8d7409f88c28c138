import { storedKey } from '../stored-key.js';
import type { KeyRow } from './key-row.js';

/** Unlike `now()` it goes on inside of a transaction. */
const NOW = 'clock_timestamp()';
const NOW_US = `floor(extract(epoch from ${NOW}) * 1000000)::bigint`;

export const postgresKeyRow: KeyRow = {
  /** PostgreSQL's text holds everything but NUL, which is written `\0` here, and the backslash therefore `\\`. */
  columnOf: (key) =>
    storedKey(/[\\\0]/u.test(key) ? key.replaceAll('\\', '\\\\').replaceAll('\0', String.raw`\0`) : key),

  async create(query, table, key) {
    await query(
      `insert into ${table} (lock_key, token, expires_at, acquired_at) values ($1, 0, ${NOW}, ${NOW})
       on conflict (lock_key) do nothing`,
      [this.columnOf(key)],
    );
  },

  async raise(query, table, key, metadata) {
    const [row] = await query(
      `update ${table} set token = greatest(token + 1, ${NOW_US}), expires_at = ${NOW}, acquired_at = ${NOW}, metadata = $2
       where lock_key = $1 returning token::text as token`,
      [this.columnOf(key), JSON.stringify(metadata)],
    );
    return typeof row?.['token'] === 'string' ? BigInt(row['token']) : undefined;
  },
};
