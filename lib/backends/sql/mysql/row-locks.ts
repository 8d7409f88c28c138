import type { Query } from '../connections/query.js';
import { toBytes, hasChangedRow } from './driver.js';
import { toStoredBytes } from '../tables/stored-key.js';
import { mysqlKeyRow } from './key-row.js';
import { IS_READ_ONLY_SQL } from './read-only.js';
import { mysqlServerSessions } from './server-sessions.js';
import { type RowLocks, type KeyAndToken, SAVEPOINT } from '../dialect/row-locks.js';

const ROLLED_BACK_CODE_PATTERN = /^ER_(LOCK_DEADLOCK|CHECKREAD)$/u;

/** Lifts limits of MariaDB that could end the transaction before the TTL. MySQL skips this text as a comment. */
const NO_MARIADB_LIMITS_SQL =
  '/*M!100300 , session idle_transaction_timeout = 0, session idle_write_transaction_timeout = 0 */';

/**
 * Lifts the session's time limit for one statement, but not the limit of the wait for the lock. `before` is for
 * MariaDB, and `hint` for MySQL. The hint's limit is longer than any wait for the lock: 0 would keep the session's
 * limit.
 */
const WITHOUT_TIME_LIMIT_SQL = {
  before: '/*M!100102 set statement max_statement_time = 0 for */',
  hint: '/*+ max_execution_time(60000) */',
};

export const mysqlRowLocks: RowLocks = {
  keyRow: mysqlKeyRow,
  serverSessions: mysqlServerSessions,
  selectTokenSql: (table) =>
    `select cast(token as char) as token, ${IS_READ_ONLY_SQL} as is_read_only from ${table} where lock_key = ?`,

  tryLockRow(query, table, key) {
    return query(`${this.selectTokenSql(table)} for update nowait`, [toStoredBytes(key)]);
  },

  lockRowAfterWait(query, table, key) {
    const selectSql = this.selectTokenSql(table).replace('select', `select ${WITHOUT_TIME_LIMIT_SQL.hint}`);
    return query(`${WITHOUT_TIME_LIMIT_SQL.before} ${selectSql} for update`, [toStoredBytes(key)]);
  },

  /** Does not wait for a process that is inserting the row. MySQL treats 0 as 1, and waits for one second. */
  async createRow(query, table, key) {
    await query('set session innodb_lock_wait_timeout = 0', []);
    try {
      await mysqlKeyRow.create(query, table, key);
      return true;
    } finally {
      await this.restoreLimits(query);
    }
  },

  setLimits: (query, { ttlMs, waitMs }) => {
    // Always set, because an earlier wait on this connection may have ended without `restoreLimits`.
    const lockTimeoutSql = `innodb_lock_wait_timeout = ${waitMs > 0 ? Math.ceil(waitMs / 1000) : 'default'}`;
    return query(`set session wait_timeout = ${ttlMs / 1000}, session ${lockTimeoutSql} ${NO_MARIADB_LIMITS_SQL}`, []);
  },
  restoreLimits: (query) => query('set session innodb_lock_wait_timeout = default', []),

  async recordHolder(query, table, { key, owner }, metadata) {
    const token = await mysqlKeyRow.writeHolder(query, table, key, metadata, owner);
    await query(`savepoint ${SAVEPOINT}`, []);
    return token;
  },
  prepareCommit,
  async commitWithoutWrites(query, table, keyAndToken) {
    await query(`rollback to savepoint ${SAVEPOINT}`, []);
    await prepareCommit(query, table, keyAndToken);
    await query('commit', []);
  },

  /** Switches off settings by which the server itself begins transactions, which would lack the isolation level. */
  prepare: (query) => query('set session completion_type = 0, session autocommit = 1', []),

  async prepareToReadOwners(query) {
    await query('set session transaction isolation level read uncommitted', []);
  },
  /** Reads the uncommitted owner, which is visible only while the holder's transaction lasts. */
  async isHeldBy(query, table, { key, owner }) {
    const rows = await query(`select 1 from ${table} where lock_key = ? and owner = ?`, [
      toStoredBytes(key),
      toBytes(owner),
    ]);
    return rows.length === 1;
  },

  heldCodePattern: /^ER_LOCK_(WAIT_TIMEOUT|NOWAIT)$/u,
  busyCodePattern: ROLLED_BACK_CODE_PATTERN,
  rolledBackCodePattern: ROLLED_BACK_CODE_PATTERN,
  // Depends on the setting innodb_rollback_on_timeout.
  mayRollBackCodePattern: /^ER_LOCK_WAIT_TIMEOUT$/u,
};

async function prepareCommit(query: Query, table: string, { key, fencingToken }: KeyAndToken): Promise<boolean> {
  return hasChangedRow(
    await query(`update ${table} set owner = null where lock_key = ? and token = ?`, [
      toStoredBytes(key),
      String(fencingToken),
    ]),
  );
}
