import { storedKey } from '../stored-key.js';
import type { KeyRow } from './key-row.js';

const NOW = 'utc_timestamp(6)';
const NOW_US = `timestampdiff(microsecond, '1970-01-01', ${NOW})`;

export const mysqlKeyRow: KeyRow = {
  columnOf: (key) => Buffer.from(storedKey(key)),

  async create(query, table, key) {
    await query(
      `insert ignore into ${table} (lock_key, token, expires_at, acquired_at) values (?, 0, ${NOW}, ${NOW})`,
      [this.columnOf(key)],
    );
  },

  async raise(query, table, key, metadata) {
    const [answer] = await query(
      `update ${table} set token = last_insert_id(greatest(token + 1, ${NOW_US})), expires_at = ${NOW},
         acquired_at = ${NOW}, metadata = ?
       where lock_key = ?`,
      [Buffer.from(JSON.stringify(metadata)), this.columnOf(key)],
    );
    return Number(answer?.['affectedRows']) === 1 ? BigInt(String(answer?.['insertId'])) : undefined;
  },
};
