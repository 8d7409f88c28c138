import { isTrue } from '../connections/query.js';
import { postgresKeyRow } from './key-row.js';
import { READ_ONLY_CONDITION } from './read-only.js';
import { postgresServerSessions } from './server-sessions.js';
import type { SessionLocks } from '../dialect/session-locks.js';
import { getAdvisoryLockId } from '../tables/session-lock-name.js';

/** Locks by advisory locks, which belong to one database. Needs `idle_session_timeout` of PostgreSQL 14. */
export const postgresSessionLocks: SessionLocks = {
  keyRow: postgresKeyRow,
  serverSessions: postgresServerSessions,

  async setIdleTimeout(query, ttlMs) {
    await query(`select set_config('idle_session_timeout', $1, false)`, [String(ttlMs)]);
  },

  async readScope(query, table) {
    const [row] = await query(
      `select nspname as schema, relname as name from pg_class join pg_namespace on pg_namespace.oid = relnamespace
       where pg_class.oid = to_regclass($1)`,
      [table],
    );
    return `${String(row?.['schema'])}\0${String(row?.['name'])}`;
  },

  async readSession(query) {
    const [row] = await query(`select pg_backend_pid() as id, ${READ_ONLY_CONDITION} as is_read_only`, []);
    return { id: String(row?.['id']), isReadOnly: isTrue(row?.['is_read_only']) };
  },
  toLockName: (scope, key) => String(getAdvisoryLockId(scope, key)),

  tryLock: (query, table, { lock, ownerLock }, column) =>
    query(
      `select case when pg_try_advisory_lock($1::bigint) then pg_try_advisory_lock($3::bigint) else false end::int as locked, metadata,
         (extract(epoch from acquired_at) * 1000)::text as since, ${READ_ONLY_CONDITION} as is_read_only
       from (select) as once left join ${table} on lock_key = $2`,
      [lock, column, ownerLock],
    ),

  async unlock(query, { lock, ownerLock }) {
    await query('select pg_advisory_unlock($1::bigint), pg_advisory_unlock($2::bigint)', [ownerLock, lock]);
  },

  /** Reads both locks at once, because `pg_locks` shows all locks of one moment. */
  async findSessionHolding(query, { lock, ownerLock }) {
    const [session] = await query(
      `select pid from pg_locks where locktype = 'advisory' and objsubid = 1 and granted
         and database = (select oid from pg_database where datname = current_database())
         and ((classid::bigint << 32) | objid::bigint) in ($1::bigint, $2::bigint)
       group by pid having count(*) = 2`,
      [lock, ownerLock],
    );
    return session && String(session['pid']);
  },
  terminateSessionSql: (id) => `select pg_terminate_backend(${id})`,
};
