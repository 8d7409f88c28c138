import { isTrue } from '../connections/query.js';
import { type FenceStatements, parseFenceToken } from '../dialect/fence-statements.js';

export const sqliteFence: FenceStatements = {
  /**
   * Takes the write lock first, by a `delete` of no rows. `fromSqlite` sends the `delete` by `exec`, because libsql
   * leaves a prepared statement unfinished when another process has the lock.
   */
  async raise(query, table, resource, token) {
    await query(`delete from ${table} where 0`, []);
    const rows = await query(
      `insert into ${table} as fence (resource, token) values (?, cast(? as integer))
       on conflict (resource) do update set token = excluded.token where excluded.token >= fence.token returning 1 as raised`,
      [resource, String(token)],
    );
    return isTrue(rows[0]?.['raised']);
  },

  async readNewestToken(query, table, resource) {
    const [row] = await query(`select cast(token as text) as token from ${table} where resource = ?`, [resource]);
    return parseFenceToken(row);
  },
};
