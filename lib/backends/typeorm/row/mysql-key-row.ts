import { NOW, NOW_US } from '../mysql-clock.js';
import { storedBytes } from '../stored-key.js';
import type { KeyRow } from './key-row.js';

export const mysqlKeyRow: KeyRow = {
  columnOf: storedBytes,

  async create(query, table, key) {
    await query(
      `insert ignore into ${table} (lock_key, token, expires_at, acquired_at) values (?, 0, ${NOW}, ${NOW})`,
      [storedBytes(key)],
    );
  },

  async raise(query, table, key, metadata) {
    const [answer] = await query(
      `update ${table} set token = last_insert_id(greatest(token + 1, ${NOW_US})), expires_at = ${NOW},
         acquired_at = ${NOW}, metadata = ?
       where lock_key = ?`,
      [Buffer.from(JSON.stringify(metadata)), storedBytes(key)],
    );
    return Number(answer?.['affectedRows']) === 1 ? BigInt(String(answer?.['insertId'])) : undefined;
  },
};
