import { idIn } from '../greeted-id.js';
import type { SessionLocks } from './session-dialect.js';
import { advisoryLockId } from './session-lock-name.js';

/** Advisory locks, which belong to one database. `idle_session_timeout` came with PostgreSQL 14. */
export const postgresSessionLocks: SessionLocks = {
  ttlMs: Math.ceil,

  async limitSilence(query, ttlMs) {
    await query(`select set_config('idle_session_timeout', $1, false)`, [String(ttlMs)]);
    return '';
  },

  sessionId: async (query) => String((await query('select pg_backend_pid() as id', []))[0]?.['id']),
  greetedId: (client) => idIn(client, 'processID'),
  nameOf: (scope, key) => String(advisoryLockId(scope, key)),

  tryLock: (query, table, name, column) =>
    query(
      `select pg_try_advisory_lock($1::bigint) as locked, metadata, (extract(epoch from acquired_at) * 1000)::text as since
       from (select) as once left join ${table} on lock_key = $2`,
      [name, column],
    ),

  async unlock(query, name) {
    await query('select pg_advisory_unlock($1::bigint)', [name]);
  },
};
