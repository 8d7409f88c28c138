import { postgresSessionLocks } from './session-locks.js';
import { advisoryLockId } from '../tables/session-lock-name.js';
import { postgresKeyRow } from './key-row.js';
import { IS_READ_ONLY } from './read-only.js';
import { postgresServerSessions } from './server-sessions.js';
import type { OwnedKey } from '../dialect/lease-statements.js';
import { type RowLocks, SAVEPOINT } from '../dialect/row-locks.js';

/** PostgreSQL 17 can end a transaction for its age alone; those before it do not know the setting. */
const NO_OTHER_LIMIT = `select set_config('transaction_timeout', '0', true) where current_setting('transaction_timeout', true) is not null`;

export const postgresRowLocks: RowLocks = {
  row: postgresKeyRow,
  serverSessions: postgresServerSessions,
  token: (table) => `select token::text as token, ${IS_READ_ONLY} as is_read_only from ${table} where lock_key = $1`,
  async create(query, table, key) {
    await query('set local lock_timeout = 1', []);
    await postgresKeyRow.create(query, table, key);
  },

  lock(table, how) {
    return `${this.token(table)} for update${how === 'nowait' ? ' nowait' : ''}`;
  },

  limit: (query, { ttlMs, waitMs }) => {
    const wait = waitMs > 0 ? `; set local lock_timeout = ${Math.ceil(waitMs)}; set local statement_timeout = 0` : '';
    return query(`set local idle_in_transaction_session_timeout = ${ttlMs}; ${NO_OTHER_LIMIT}${wait}`, []);
  },
  settle: (query) => query('set local lock_timeout to default; set local statement_timeout to default', []),

  async take(query, table, lock, metadata) {
    const token = await postgresKeyRow.raise(query, table, lock.key, metadata);
    await query(`select pg_advisory_xact_lock(${markOf(table, lock)}); savepoint ${SAVEPOINT}`, []);
    return token;
  },
  async undo(query) {
    await query(`rollback to savepoint ${SAVEPOINT}; commit`, []);
  },

  isHeldBy: async (query, table, lock) =>
    (await postgresSessionLocks.sessionWith(query, String(markOf(table, lock)))) !== undefined,

  held: /^55P03$/u,
  busy: /^(40001|40P01)$/u,
  aborted: /^25P02$/u,
};

/** Nobody sees into a transaction, but everybody sees the advisory lock that it has, and loses as it loses the row. */
function markOf(table: string, { key, owner }: OwnedKey): bigint {
  return advisoryLockId(`row\0${table}\0${owner}`, key);
}
