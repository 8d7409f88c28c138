import type { Query } from '../connections/query.js';
import { bytesOf, changed } from './driver.js';
import { storedBytes } from '../tables/stored-key.js';
import { mysqlKeyRow } from './key-row.js';
import { READ_ONLY_CONDITION } from './read-only.js';
import { mysqlServerSessions } from './server-sessions.js';
import { type RowLocks, type TokenOfRow, SAVEPOINT } from '../dialect/row-locks.js';

const VICTIM = /^ER_(LOCK_DEADLOCK|CHECKREAD)$/u;

/** MariaDB's own limits, which could end the transaction before the TTL. MySQL takes this for a comment. */
const NO_OTHER_LIMIT =
  '/*M!100300 , session idle_transaction_timeout = 0, session idle_write_transaction_timeout = 0 */';

/** Lifts, for one statement of MariaDB and MySQL, every limit of its time but the wait for the lock. */
const PATIENT = {
  before: '/*M!100102 set statement max_statement_time = 0 for */',
  hint: '/*+ max_execution_time(60000) */',
};

export const mysqlRowLocks: RowLocks = {
  row: mysqlKeyRow,
  serverSessions: mysqlServerSessions,
  token: (table) =>
    `select cast(token as char) as token, ${READ_ONLY_CONDITION} as is_read_only from ${table} where lock_key = ?`,

  lock(query, table, key) {
    return query(`${this.token(table)} for update nowait`, [storedBytes(key)]);
  },

  lockInLine(query, table, key) {
    const select = this.token(table).replace('select', `select ${PATIENT.hint}`);
    return query(`${PATIENT.before} ${select} for update`, [storedBytes(key)]);
  },

  /** MySQL takes 0 for 1. */
  async create(query, table, key) {
    await query('set session innodb_lock_wait_timeout = 0', []);
    try {
      await mysqlKeyRow.create(query, table, key);
      return true;
    } finally {
      await this.settle(query);
    }
  },

  limit: (query, { ttlMs, waitMs }) => {
    const lockTimeout = waitMs > 0 ? `, session innodb_lock_wait_timeout = ${Math.ceil(waitMs / 1000)}` : '';
    return query(`set session wait_timeout = ${ttlMs / 1000}${lockTimeout} ${NO_OTHER_LIMIT}`, []);
  },
  settle: (query) => query('set session innodb_lock_wait_timeout = default', []),

  async take(query, table, { key, owner }, metadata) {
    const token = await mysqlKeyRow.raise(query, table, key, metadata, owner);
    await query(`savepoint ${SAVEPOINT}`, []);
    return token;
  },
  leave,
  async undo(query, table, grant) {
    await query(`rollback to savepoint ${SAVEPOINT}`, []);
    await leave(query, table, grant);
    await query('commit', []);
  },

  /** Otherwise the first statement, or the end of the transaction before, begins one whose isolation nobody can choose. */
  prepare: (query) => query('set session completion_type = 0, session autocommit = 1', []),

  async prepareToLook(query) {
    await query('set session transaction isolation level read uncommitted', []);
  },
  /** The owner is never committed, hence visible only while the transaction lasts. */
  async isHeldBy(query, table, { key, owner }) {
    const rows = await query(`select 1 from ${table} where lock_key = ? and owner = ?`, [
      storedBytes(key),
      bytesOf(owner),
    ]);
    return rows.length === 1;
  },

  held: /^ER_LOCK_(WAIT_TIMEOUT|NOWAIT)$/u,
  busy: VICTIM,
  rolledBack: VICTIM,
  // By innodb_rollback_on_timeout.
  mayRollBack: /^ER_LOCK_WAIT_TIMEOUT$/u,
};

async function leave(query: Query, table: string, { key, fencingToken }: TokenOfRow): Promise<boolean> {
  return changed(
    await query(`update ${table} set owner = null where lock_key = ? and token = ?`, [
      storedBytes(key),
      String(fencingToken),
    ]),
  );
}
