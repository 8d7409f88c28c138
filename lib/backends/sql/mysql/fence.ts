import { type FenceStatements, tokenIn } from '../dialect/fence-statements.js';
import { storedBytes } from '../tables/stored-key.js';
import { lockFenceRow } from './fence-row.js';

/** With this MariaDB does not lock a row that has changed since the transaction's first read, and rolls that back. */
const REFUSES_CHANGED = 'innodb_snapshot_isolation';

export const mysqlFence: FenceStatements = {
  /** Since 11.6.2 by default. 10.6.18, 10.11.8 and later ones can be told to, which their version does not show. */
  async seeingPresent(query) {
    const [refuses] = await query(`show variables where variable_name = '${REFUSES_CHANGED}' and value = 'ON'`, []);
    if (!refuses) return query;
    return (sql, parameters) => query(`set statement ${REFUSES_CHANGED} = 0 for ${sql}`, parameters);
  },

  /**
   * One statement that takes the row's lock at once: to update first and to insert then makes two newcomers deadlock.
   */
  async raise(query, table, resource, token) {
    await query(
      `insert into ${table} (resource, token) values (?, cast(? as signed))
       on duplicate key update token = greatest(token, cast(? as signed))`,
      [storedBytes(resource), String(token), String(token)],
    );
    return (await this.newest(query, table, resource)) === token;
  },

  /** Locking reads see what is there now, not what was there when the caller's transaction began. */
  async newest(query, table, resource) {
    const [row] = await query(`select cast(token as char) as token from ${table} where resource = ? for update`, [
      storedBytes(resource),
    ]);
    return tokenIn(row);
  },

  /** The row is locked first: the look, if it is the first one, must not take its snapshot before the wait. */
  async isSnapshotOlder(query, table, resource) {
    await lockFenceRow(query, table, resource);
    const [seen] = await query(`select cast(token as char) as token from ${table} where resource = ?`, [
      storedBytes(resource),
    ]);
    const newest = await this.newest(query, table, resource);
    return seen === undefined || tokenIn(seen) !== newest;
  },
};
