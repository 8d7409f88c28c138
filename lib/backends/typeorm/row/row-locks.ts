import { LockConfigurationError } from '../../../core/index.js';
import type { DatabaseError } from '../clean-error.js';
import type { Query } from '../sql-dialect.js';
import { KEY_ROWS, type KeyRow } from './key-row.js';

/** What differs between databases that lock rows. All of it is said within the transaction. */
export interface RowLocks {
  readonly row: KeyRow;
  /** Rounded up to what the server can count. */
  ttlMs(askedMs: number): number;
  /** The key's token as text; its one parameter is the key's column. */
  token(table: string): string;
  /** Makes the key's row where it is missing. Waits for nobody who has made it meanwhile, and has it: see `isHeld`. */
  create(query: Query, table: string, key: string): Promise<void>;
  /**
   * Has the server end the connection, and the transaction with it, when it hears nothing from it for `ttlMs`: from before
   * the row is asked for, as it may be granted to one who is frozen by then. Bounds the wait for it, until `settle`.
   */
  limit(query: Query, times: { readonly ttlMs: number; readonly waitMs: number }): Promise<unknown>;
  /** The row is ours after a wait: gives back the application's own limit of waits. */
  settle(query: Query): Promise<unknown>;
  /** Whether somebody else has the row. */
  isHeld(error: DatabaseError): boolean;
  /** Whether the database gave the transaction up for the sake of others: it did nothing, and may be tried again. */
  isBusy(error: DatabaseError): boolean;
  /** Whether the database has rolled the whole transaction back, and freed the row with it. */
  isRolledBack(error: DatabaseError): boolean;
  /** Whether the transaction is there, but takes nothing more than its end. */
  isAborted(error: DatabaseError): boolean;
}

const postgres: RowLocks = {
  row: KEY_ROWS.postgres,
  ttlMs: Math.ceil,
  token: (table) => `select token::text as token from ${table} where lock_key = $1`,
  async create(query, table, key) {
    await query('set local lock_timeout = 1', []);
    await KEY_ROWS.postgres.create(query, table, key);
  },

  limit: (query, { ttlMs, waitMs }) => {
    const lockTimeout = waitMs > 0 ? `; set local lock_timeout = ${Math.ceil(waitMs)}` : '';
    return query(`set local idle_in_transaction_session_timeout = ${ttlMs}${lockTimeout}`, []);
  },
  settle: (query) => query('set local lock_timeout to default', []),
  isHeld: ({ code }) => code === '55P03',
  isBusy: ({ code }) => code === '40001' || code === '40P01',
  isRolledBack: () => false,
  isAborted: ({ code }) => code === '25P02',
};

const isVictim = ({ code }: DatabaseError): boolean => code === 'ER_LOCK_DEADLOCK' || code === 'ER_CHECKREAD';

/** What `idle_transaction_timeout` and the like of MariaDB would end sooner than the TTL; MySQL takes it for a comment. */
const NO_OTHER_LIMIT =
  '/*M!100300 , session idle_transaction_timeout = 0, session idle_write_transaction_timeout = 0 */';

/** InnoDB waits for whole seconds. */
const mysql: RowLocks = {
  row: KEY_ROWS.mysql,
  ttlMs: (askedMs) => Math.ceil(askedMs / 1000) * 1000,
  token: (table) => `select cast(token as char) as token from ${table} where lock_key = ?`,

  /** MySQL takes 0 for 1. */
  async create(query, table, key) {
    await query('set session innodb_lock_wait_timeout = 0', []);
    try {
      await KEY_ROWS.mysql.create(query, table, key);
    } finally {
      await this.settle(query);
    }
  },

  limit: (query, { ttlMs, waitMs }) => {
    const lockTimeout = waitMs > 0 ? `, session innodb_lock_wait_timeout = ${Math.ceil(waitMs / 1000)}` : '';
    return query(`set session wait_timeout = ${ttlMs / 1000}${lockTimeout} ${NO_OTHER_LIMIT}`, []);
  },
  settle: (query) => query('set session innodb_lock_wait_timeout = default', []),
  isHeld: ({ code }) => code === 'ER_LOCK_WAIT_TIMEOUT' || code === 'ER_LOCK_NOWAIT',
  isBusy: isVictim,
  isRolledBack: isVictim,
  isAborted: () => false,
};

const DIALECTS: ReadonlyMap<string, RowLocks> = new Map([
  ['postgres', postgres],
  ['mysql', mysql],
  ['mariadb', mysql],
]);

/** @throws LockConfigurationError for a database that locks no single rows */
export function rowLocksOf(type: string): RowLocks {
  const locks = DIALECTS.get(type);
  if (locks) return locks;
  throw new LockConfigurationError(
    `strategy 'row' needs ${[...DIALECTS.keys()].join(', ')}; a data source of type "${type}" locks no single rows`,
    'strategy',
  );
}
