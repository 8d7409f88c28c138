import { type LeaseAttempt, packMetadata } from '../../../core/index.js';
import { DatabaseError, WRITABLE } from '../connections/database-error.js';
import { IN_US, NOW, NOW_US, usSince1970 } from './clock.js';
import { refusalOf } from '../dialect/refusal.js';
import { answersAsExpected, bytesOf, changed, insertedId } from './driver.js';
import type { LeaseRow, Query, SqlDialect } from '../dialect/sql-dialect.js';
import { STORED_KEY_BYTES, storedBytes } from '../tables/stored-key.js';
import { partsOf } from '../tables/table-name.js';

const BUSY: ReadonlySet<string | undefined> = new Set(['ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT', 'ER_CHECKREAD']);

const ABOUT_TABLE: ReadonlySet<string | undefined> = new Set([
  'ER_NO_SUCH_TABLE',
  'ER_BAD_FIELD_ERROR',
  'ER_TABLEACCESS_DENIED_ERROR',
  'ER_COLUMNACCESS_DENIED_ERROR',
]);

const KEY_COLUMN = new RegExp(`^varbinary\\(${STORED_KEY_BYTES}\\) primary key$`, 'u');

/** How often a step starts again because the row came or went meanwhile. */
const ROUNDS = 5;

/** MySQL and MariaDB. Each statement is a transaction on one row by its primary key: every isolation level does. */
export const mysql: SqlDialect = {
  connections: 2,

  connection(options, sockets) {
    if (options.type !== 'mysql' && options.type !== 'mariadb') return options;
    const { replication, extra, ...rest } = options;
    return { ...rest, ...replication?.master, poolSize: 1, extra: { ...extra, ...answersAsExpected(sockets, extra) } };
  },

  /**
   * The server gives up statements that we no longer wait for: a late one would lock a key without a holder. It keeps
   * idle connections for eight hours, since each one that it ends puts the locks in doubt for a moment.
   */
  async prepare(query, requestTimeoutMs) {
    const seconds = Math.max(1, Math.floor(requestTimeoutMs / 1000));
    await query(
      `set session autocommit = 1, session wait_timeout = 28800,
         session innodb_lock_wait_timeout = ${seconds}, session lock_wait_timeout = ${seconds}`,
      [],
    );
    return false;
  },

  quote: (name) => `\`${name.replaceAll('`', '``')}\``,

  lockColumns: {
    lock_key: KEY_COLUMN,
    owner: /^varbinary\(255\)$/u,
    token: /^bigint/u,
    expires_at: /^datetime\(6\)$/u,
    acquired_at: /^datetime\(6\)$/u,
    metadata: /text$/u,
  },

  fenceColumns: { resource: KEY_COLUMN, token: /^bigint/u },

  describe(query, table) {
    const { schema, name } = partsOf(table);
    return query(
      `select column_name as name, concat(column_type, if(column_key = 'PRI', ' primary key', '')) as type
       from information_schema.columns where table_schema = coalesce(?, database()) and table_name = ?`,
      [schema, name],
    );
  },

  async assertPrimary(query) {
    const [row] = await query('select @@global.read_only as is_read_only', []);
    if (Number(row?.['is_read_only']) !== 1) return;
    const message = `the server is running with read_only, as replicas do: ${WRITABLE}`;
    throw new DatabaseError(message, 'ER_OPTION_PREVENTS_STATEMENT');
  },

  async forgets(query) {
    const settings =
      'innodb_flush_log_at_trx_commit as flush, @@global.log_bin as log_bin, @@global.sync_binlog as sync';
    const [row] = await query(`select @@global.${settings}`, []);
    const { flush, log_bin: logs, sync } = row ?? {};
    // MariaDB has a 3, which flushes more than once.
    if (flush !== undefined && ![1, 3].includes(Number(flush))) {
      return `a crash can undo grants: innodb_flush_log_at_trx_commit is ${Number(flush)}, set it to 1`;
    }
    const lags = Number(logs) === 1 && Number(sync) !== 1;
    return lags ? `a crash can undo grants: sync_binlog is ${Number(sync)}, set it to 1` : undefined;
  },

  createLockTable: (table) => `
    create table if not exists ${table} (
      lock_key varbinary(${STORED_KEY_BYTES}) not null primary key,
      owner varbinary(255),
      token bigint not null,
      expires_at datetime(6) not null,
      acquired_at datetime(6) not null,
      metadata text character set utf8mb4
    ) engine = InnoDB`,

  createFenceTable: (table) => `
    create table if not exists ${table} (
      resource varbinary(${STORED_KEY_BYTES}) not null primary key,
      token bigint not null
    ) engine = InnoDB`,

  async tryAcquire(query, table, lease) {
    let holder: Record<string, unknown> | undefined;
    for (let round = 0; round < ROUNDS; round += 1) {
      const granted = await take(query, table, lease);
      if (granted) return granted;
      [holder] = await query(
        `select owner is null or owner = ? as changed, cast(metadata as char) as metadata, ${usSince1970('acquired_at')} / 1000 as since,
           greatest(timestampdiff(microsecond, ${NOW}, expires_at) / 1000, 0) as remaining
         from ${table} where lock_key = ?`,
        [bytesOf(lease.owner), storedBytes(lease.key)],
      );
      if (holder && Number(holder['changed']) === 0) return refusalOf(holder);
      const created = holder ? undefined : await create(query, table, lease);
      if (created) return created;
    }
    // `insert ignore` keeps to itself what it did not like.
    if (!holder) throw new DatabaseError('the server did not insert a row for the key', undefined);
    return refusalOf(holder);
  },

  async renew(query, table, { key, owner, ttlMs }) {
    return changed(
      await query(
        `update ${table} set expires_at = ${IN_US} where lock_key = ? and owner = ? and expires_at > ${NOW}`,
        [ttlMs * 1000, storedBytes(key), bytesOf(owner)],
      ),
    );
  },

  async release(query, table, { key, owner }) {
    return changed(
      await query(
        `update ${table} set owner = null, expires_at = ${NOW}, metadata = null where lock_key = ? and owner = ?`,
        [storedBytes(key), bytesOf(owner)],
      ),
    );
  },

  async isHeldBy(query, table, { key, owner }) {
    const rows = await query(`select 1 from ${table} where lock_key = ? and owner = ? and expires_at > ${NOW}`, [
      storedBytes(key),
      bytesOf(owner),
    ]);
    return rows.length === 1;
  },

  /** Looks without locking first: a `delete` by time alone would lock every row that it passes. */
  async reap(query, table, idleMs) {
    const idle = `expires_at < ${NOW} - interval ? microsecond`;
    const rows = await query(`select lock_key from ${table} where ${idle} limit 1000`, [idleMs * 1000]);
    const keys = rows.map((row) => row['lock_key']);
    if (keys.length > 0) await query(`delete from ${table} where lock_key in (?) and ${idle}`, [keys, idleMs * 1000]);
  },

  /**
   * One statement that takes the row's lock at once: to update first and to insert then makes two newcomers deadlock.
   */
  async raiseFence(query, table, resource, token) {
    await query(
      `insert into ${table} (resource, token) values (?, cast(? as signed))
       on duplicate key update token = greatest(token, cast(? as signed))`,
      [storedBytes(resource), String(token), String(token)],
    );
    return (await this.newestFence(query, table, resource)) === token;
  },

  /** Locking reads see what is there now, not what was there when the caller's transaction began. */
  async newestFence(query, table, resource) {
    const [row] = await query(`select cast(token as char) as token from ${table} where resource = ? for update`, [
      storedBytes(resource),
    ]);
    return typeof row?.['token'] === 'string' ? BigInt(row['token']) : undefined;
  },

  isBusy: ({ code }) => BUSY.has(code),
  isAboutTable: ({ code }) => ABOUT_TABLE.has(code),
};

/** Assignments run from left to right: the token's is the only one that needs the old owner. */
async function take(query: Query, table: string, { key, owner, ttlMs, metadata }: LeaseRow) {
  const us = bytesOf(owner);
  return grantOf(
    await query(
      `update ${table} set
         token = last_insert_id(if(owner = ?, token, greatest(token + 1, ${NOW_US}))),
         owner = ?, expires_at = ${IN_US}, acquired_at = ${NOW}, metadata = ?
       where lock_key = ? and (owner is null or owner = ? or expires_at <= ${NOW})`,
      [us, us, ttlMs * 1000, bytesOf(packMetadata(metadata)), storedBytes(key), us],
    ),
  );
}

async function create(query: Query, table: string, { key, owner, ttlMs, metadata }: LeaseRow) {
  return grantOf(
    await query(
      `insert ignore into ${table} (lock_key, owner, token, expires_at, acquired_at, metadata)
       values (?, ?, last_insert_id(${NOW_US}), ${IN_US}, ${NOW}, ?)`,
      [storedBytes(key), bytesOf(owner), ttlMs * 1000, bytesOf(packMetadata(metadata))],
    ),
  );
}

function grantOf(answer: Awaited<ReturnType<Query>>): LeaseAttempt | undefined {
  const fencingToken = insertedId(answer);
  return fencingToken === undefined ? undefined : { acquired: true, fencingToken };
}
