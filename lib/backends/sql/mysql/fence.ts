import { type FenceStatements, parseFenceToken } from '../dialect/fence-statements.js';
import { toStoredBytes } from '../tables/stored-key.js';
import { lockFenceRow } from './fence-row.js';

/** Setting of MariaDB. With it, a transaction that locks a row which changed after its first read is rolled back. */
const SNAPSHOT_SETTING = 'innodb_snapshot_isolation';

export const mysqlFence: FenceStatements = {
  /** Reads the setting, because versions differ: it is on by default since 11.6.2, and optional since 10.6.18. */
  async createCurrentReadQuery(query) {
    const [enabledSettingRow] = await query(
      `show variables where variable_name = '${SNAPSHOT_SETTING}' and value = 'ON'`,
      [],
    );
    if (!enabledSettingRow) return query;
    return (sql, parameters) => query(`set statement ${SNAPSHOT_SETTING} = 0 for ${sql}`, parameters);
  },

  /** Locks the row at once, by one statement. With an update and then an insert, two newcomers would deadlock. */
  async raise(query, table, resource, token) {
    await query(
      `insert into ${table} (resource, token) values (?, cast(? as signed))
       on duplicate key update token = greatest(token, cast(? as signed))`,
      [toStoredBytes(resource), String(token), String(token)],
    );
    return (await this.readNewestToken(query, table, resource)) === token;
  },

  /** Reads with a lock, to see the latest commit and not the snapshot of the transaction. */
  async readNewestToken(query, table, resource) {
    const [row] = await query(`select cast(token as char) as token from ${table} where resource = ? for update`, [
      toStoredBytes(resource),
    ]);
    return parseFenceToken(row);
  },

  /** Locks the row before it reads, because an earlier read could take the snapshot before the wait for the lock. */
  async isSnapshotStale(query, table, resource) {
    await lockFenceRow(query, table, resource);
    const [snapshotRow] = await query(`select cast(token as char) as token from ${table} where resource = ?`, [
      toStoredBytes(resource),
    ]);
    const newestToken = await this.readNewestToken(query, table, resource);
    return snapshotRow === undefined || parseFenceToken(snapshotRow) !== newestToken;
  },
};
