import { isTrue } from '../connections/query.js';
import { mysqlKeyRow } from './key-row.js';
import { decodeTexts, textBytesSql } from './driver.js';
import { IS_READ_ONLY_SQL } from './read-only.js';
import { mysqlServerSessions } from './server-sessions.js';
import { splitTableName } from '../tables/table-name.js';
import type { Query } from '../connections/query.js';
import type { LockNames, SessionLocks } from '../dialect/session-locks.js';
import { getUserLockName } from '../tables/session-lock-name.js';

/**
 * Locks of `GET_LOCK`. Their names belong to the whole server, so the hash in them covers the database's name, too.
 * Servers of a cluster do not share these locks.
 */
export const mysqlSessionLocks: SessionLocks = {
  keyRow: mysqlKeyRow,
  serverSessions: mysqlServerSessions,

  async setIdleTimeout(query, ttlMs) {
    await query(`set session wait_timeout = ${ttlMs / 1000}`, []);
  },

  /** A server that ignores case in names of tables has one table, and so one namespace, for all their spellings. */
  async readNamespace(query, table) {
    const { schema, name } = splitTableName(table);
    const [row] = await query(
      'select coalesce(?, database()) as scope, @@lower_case_table_names <> 0 as ignores_case',
      [schema],
    );
    const namespace = `${String(row?.['scope'])}\0${name}`;
    return isTrue(row?.['ignores_case']) ? namespace.toLowerCase() : namespace;
  },

  async readSession(query) {
    const [row] = await query(`select connection_id() as id, ${IS_READ_ONLY_SQL} as is_read_only`, []);
    return { id: String(row?.['id']), isReadOnly: isTrue(row?.['is_read_only']) };
  },
  toLockName: getUserLockName,

  async tryLock(query, table, { lock, ownerLock }, keyColumnValue) {
    const rows = await query(
      `select case get_lock(?, 0) when 1 then if(get_lock(?, 0) = 1, 1, -1) when 0 then 0 end as locked, ${textBytesSql('metadata')} as metadata,
         timestampdiff(microsecond, '1970-01-01', acquired_at) / 1000 as since, ${IS_READ_ONLY_SQL} as is_read_only
       from (select 1) as once left join ${table} on lock_key = ?`,
      [lock, ownerLock, keyColumnValue],
    );
    return decodeTexts(rows);
  },

  async unlock(query, { lock, ownerLock }) {
    await query('select release_lock(?), release_lock(?)', [ownerLock, lock]);
  },

  async findSessionHolding(query, names) {
    return (await readSessionIds(query, names)).holderId;
  },
  async endOtherSessionHolding(query, names) {
    const { holderId, ownId } = await readSessionIds(query, names);
    if (holderId === undefined || holderId === ownId) return false;
    await query(`kill ${holderId}`, []);
    return true;
  },
  terminateSessionSql: (id) => `kill ${id}`,
};

/** Reads the owner lock first: a session that still has the lock afterwards had both when the owner lock was read. */
async function readSessionIds(query: Query, { lock, ownerLock }: LockNames) {
  const [row] = await query(
    'select is_used_lock(?) as owner_lock_id, is_used_lock(?) as lock_id, connection_id() as own_id',
    [ownerLock, lock],
  );
  const [ownerLockId, lockId] = [String(row?.['owner_lock_id']), String(row?.['lock_id'])];
  return { holderId: ownerLockId === lockId && lockId !== 'null' ? lockId : undefined, ownId: String(row?.['own_id']) };
}
