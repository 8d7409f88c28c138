import { isTrue } from '../connections/query.js';
import { selectSessionWithBothLocksSql } from './advisory-locks.js';
import { postgresKeyRow } from './key-row.js';
import { IS_READ_ONLY_SQL } from './read-only.js';
import { postgresServerSessions } from './server-sessions.js';
import type { SessionLocks } from '../dialect/session-locks.js';
import { getAdvisoryLockId } from '../tables/session-lock-name.js';

const SELECT_SESSION_SQL = selectSessionWithBothLocksSql('$1::bigint', '$2::bigint');

/** Advisory locks, which belong to one database. They need `idle_session_timeout`, which came with PostgreSQL 14. */
export const postgresSessionLocks: SessionLocks = {
  keyRow: postgresKeyRow,
  serverSessions: postgresServerSessions,

  async setIdleTimeout(query, ttlMs) {
    await query(`select set_config('idle_session_timeout', $1, false)`, [String(ttlMs)]);
  },

  async readNamespace(query, table) {
    const [row] = await query(
      `select nspname as schema, relname as name from pg_class join pg_namespace on pg_namespace.oid = relnamespace
       where pg_class.oid = to_regclass($1)`,
      [table],
    );
    return `${String(row?.['schema'])}\0${String(row?.['name'])}`;
  },

  async readSession(query) {
    const [row] = await query(`select pg_backend_pid() as id, ${IS_READ_ONLY_SQL} as is_read_only`, []);
    return { id: String(row?.['id']), isReadOnly: isTrue(row?.['is_read_only']) };
  },
  toLockName: (namespace, key) => String(getAdvisoryLockId(namespace, key)),

  tryLock: (query, table, { lock, ownerLock }, keyColumnValue) =>
    query(
      `select case when pg_try_advisory_lock($1::bigint) then case when pg_try_advisory_lock($3::bigint) then 1 else -1 end else 0 end as locked, metadata,
         (extract(epoch from acquired_at) * 1000)::text as since, ${IS_READ_ONLY_SQL} as is_read_only
       from (select) as once left join ${table} on lock_key = $2`,
      [lock, keyColumnValue, ownerLock],
    ),

  async unlock(query, { lock, ownerLock }) {
    await query('select pg_advisory_unlock($1::bigint), pg_advisory_unlock($2::bigint)', [ownerLock, lock]);
  },

  async findSessionHolding(query, { lock, ownerLock }) {
    const [session] = await query(SELECT_SESSION_SQL, [lock, ownerLock]);
    return session && String(session['pid']);
  },
  async endOtherSessionHolding(query, { lock, ownerLock }) {
    const sessions = await query(
      `select pg_terminate_backend(pid) from (${SELECT_SESSION_SQL}) as session where pid <> pg_backend_pid()`,
      [lock, ownerLock],
    );
    return sessions.length > 0;
  },
  terminateSessionSql: (id) => `select pg_terminate_backend(${id})`,
};
