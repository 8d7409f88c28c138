import { selectSessionWithBothLocksSql } from './advisory-locks.js';
import { getAdvisoryLockId } from '../tables/session-lock-name.js';
import { postgresKeyRow } from './key-row.js';
import { isTrue } from '../connections/query.js';
import { toStoredText } from '../tables/stored-key.js';
import { quoteText } from '../tables/table-name.js';
import { NOW_SQL } from './clock.js';
import { IS_READ_ONLY_SQL } from './read-only.js';
import { postgresServerSessions } from './server-sessions.js';
import type { OwnedKey } from '../dialect/lease-statements.js';
import { type RowLocks, SAVEPOINT } from '../dialect/row-locks.js';
import type { LockNames } from '../dialect/session-locks.js';

/** Selected column with the id of the server's session. Behind a pooler, the handshake has the pooler's id instead. */
const SESSION_ID_SQL = 'pg_backend_pid()::text as session_id';

const SELECT_HOLDER_SQL = selectSessionWithBothLocksSql(idPerTableSql('$1', '$3'), idPerTableSql('$2', '$3'));

/** Lifts the limit by which PostgreSQL 17 ends a transaction for its age. Earlier versions lack the setting. */
const LIFT_AGE_LIMIT_SQL = `select set_config('transaction_timeout', '0', true) where current_setting('transaction_timeout', true) is not null`;

export const postgresRowLocks: RowLocks = {
  keyRow: postgresKeyRow,
  serverSessions: postgresServerSessions,
  selectTokenSql: (table) =>
    `select token::text as token, ${IS_READ_ONLY_SQL} as is_read_only from ${table} where lock_key = $1`,

  /**
   * Inserts only while it has an advisory lock. While another process inserts the row, an insert would wait, and fail
   * by `lock_timeout`. This time-out is one millisecond, the shortest possible: 0 would mean no limit.
   */
  async createRow(query, table, key) {
    await query('set local lock_timeout = 1', []);
    const lockSql = idPerTableSql(`'${getAdvisoryLockId('make', key)}'`, quoteText(table));
    const [row] = await query(
      `with turn as (select pg_try_advisory_xact_lock(${lockSql}) as is_ours),
         made as (
           insert into ${table} (lock_key, token, expires_at, acquired_at) select $1, 0, ${NOW_SQL}, ${NOW_SQL} from turn
           where is_ours on conflict (lock_key) do nothing
         )
       select is_ours, ${SESSION_ID_SQL} from turn`,
      [toStoredText(key)],
    );
    return isTrue(row?.['is_ours']);
  },

  /** Skips a locked row, because `nowait` would write an error into the server's log for each refusal. */
  tryLockRow(query, table, key) {
    return query(
      `with ours as (${this.selectTokenSql(table)} for update skip locked)
       select token, is_read_only, false as is_held, ${SESSION_ID_SQL} from ours
       union all select null, false, true, null from ${table} where lock_key = $1 and not exists (select from ours)`,
      [toStoredText(key)],
    );
  },

  /** Waits in a `do` block, which catches the error of a wait without success: the server would log it otherwise. */
  async lockRowAfterWait(query, table, key, waitMs) {
    await query(`select set_config('${KEY_SETTING}', $1, true)`, [toStoredText(key)]);
    await query(
      `set local statement_timeout = ${Math.ceil(waitMs)}; do ${quoteText(waitForRowSql(table))}; set local statement_timeout = 0`,
      [],
    );
    return this.tryLockRow(query, table, key);
  },

  setLimits: (query, { ttlMs, waitMs }) => {
    const waitLimitSql =
      waitMs > 0 ? `; set local lock_timeout = ${Math.ceil(waitMs)}; set local statement_timeout = 0` : '';
    return query(`set local idle_in_transaction_session_timeout = ${ttlMs}; ${LIFT_AGE_LIMIT_SQL}${waitLimitSql}`, []);
  },
  restoreLimits: (query) => query('set local lock_timeout to default; set local statement_timeout to default', []),

  async recordHolder(query, table, ownedKey, metadata) {
    const token = await postgresKeyRow.writeHolder(query, table, ownedKey.key, metadata);
    const { lock, ownerLock } = getHolderLockIds(ownedKey);
    const lockSql = (id: string): string => `pg_advisory_xact_lock(${idPerTableSql(`'${id}'`, quoteText(table))})`;
    await query(`select ${lockSql(lock)}, ${lockSql(ownerLock)}; savepoint ${SAVEPOINT}`, []);
    return token;
  },
  async commitWithoutWrites(query) {
    await query(`rollback to savepoint ${SAVEPOINT}; commit`, []);
  },

  async isHeldBy(query, table, ownedKey) {
    const { lock, ownerLock } = getHolderLockIds(ownedKey);
    const sessions = await query(SELECT_HOLDER_SQL, [lock, ownerLock, table]);
    return sessions.length > 0;
  },

  // lock_not_available
  heldCodePattern: /^55P03$/u,
  // serialization_failure, deadlock_detected
  busyCodePattern: /^(40001|40P01)$/u,
  // in_failed_sql_transaction
  abortedCodePattern: /^25P02$/u,
};

/** Setting that passes the key to a `do` block, which takes no parameters. */
const KEY_SETTING = 'nestjs_distributed_lock.key';

function waitForRowSql(table: string): string {
  const fromRowSql = `from ${table} where lock_key = current_setting('${KEY_SETTING}')`;
  return `begin
    perform 1 ${fromRowSql} for update;
    if not found and exists (select ${fromRowSql}) then
      raise insufficient_privilege using message = 'a policy of row-level security hides the row from updates';
    end if;
  exception when lock_not_available or query_canceled then null;
  end`;
}

/**
 * Returns the ids of advisory locks that show the holder to other sessions, which cannot see who has locked a row. The
 * server frees the row of a dead holder a moment before these locks. The next holder therefore waits for the `lock` of
 * the key. The session that has both locks is the holder.
 */
function getHolderLockIds({ key, owner }: OwnedKey): LockNames {
  const toId = (ownerOrEmpty: string): string => String(getAdvisoryLockId(`row\0${ownerOrEmpty}`, key));
  return { lock: toId(''), ownerLock: toId(owner) };
}

/** Returns SQL for a lock id that is different for each table, also where several schemas have tables of one name. */
function idPerTableSql(idSql: string, tableNameSql: string): string {
  return `(${idSql}::bigint # to_regclass(${tableNameSql})::oid::bigint)`;
}
