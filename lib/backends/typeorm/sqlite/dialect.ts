import type { DataSourceOptions } from 'typeorm';
import { type LeaseAttempt, LockConfigurationError, packMetadata } from '../../../core/index.js';
import { refusalOf } from '../dialect/refusal.js';
import type { Query, SqlDialect } from '../dialect/sql-dialect.js';
import { NOW } from './clock.js';
import { lockForWriting, runAlone } from './driver.js';
import { partsOf } from '../tables/table-name.js';

/** The driver blocks the event loop while it waits for another process's write lock. The store asks again. */
const BUSY_TIMEOUT_MS = 1;

/** SQLite in a file, also shared by several processes of one host (never over a network file system). */
export const sqlite: SqlDialect = {
  connections: 1,

  connection(options: DataSourceOptions) {
    if (options.type !== 'better-sqlite3') return options;
    if (/^(|:memory:|file::memory:.*)$/u.test(options.database)) {
      throw new LockConfigurationError(
        'a SQLite database in memory belongs to one connection, and locks need one of their own: use a file, or memory()',
        'dataSource',
      );
    }
    if (options.readonly === true) {
      throw new LockConfigurationError('a SQLite database that is opened readonly takes no locks', 'dataSource');
    }
    return { ...options, enableWAL: true, timeout: BUSY_TIMEOUT_MS };
  },

  async prepare(query) {
    await query(`pragma busy_timeout = ${BUSY_TIMEOUT_MS}`, []);
    return false;
  },

  quote: (name) => `"${name.replaceAll('"', '""')}"`,

  lockColumns: {
    lock_key: /^text primary key$/u,
    owner: /^text$/u,
    token: /^integer$/u,
    expires_at: /^integer$/u,
    acquired_at: /^integer$/u,
    metadata: /^text$/u,
  },

  fenceColumns: { resource: /^text primary key$/u, token: /^integer$/u },

  describe(query, table) {
    const columns = `select name, lower(type) || iif(pk = 1, ' primary key', '') as type from pragma_table_info(?)`;
    return query(columns, [partsOf(table).name]);
  },

  createLockTable: (table) => `
    create table if not exists ${table} (
      lock_key text not null primary key,
      owner text,
      token integer not null,
      expires_at integer not null,
      acquired_at integer not null,
      metadata text
    )`,

  createFenceTable: (table) =>
    `create table if not exists ${table} (resource text not null primary key, token integer not null)`,

  async tryAcquire(query, table, { key, owner, ttlMs, metadata }) {
    const rows = await query(
      `insert into ${table} as held (lock_key, owner, token, expires_at, acquired_at, metadata)
       values (?, ?, ${NOW} * 1000, ${NOW} + ?, ${NOW}, ?)
       on conflict (lock_key) do update set
         token = case when held.owner = excluded.owner then held.token else max(held.token + 1, excluded.token) end,
         owner = excluded.owner, expires_at = excluded.expires_at,
         acquired_at = excluded.acquired_at, metadata = excluded.metadata
       where held.owner is null or held.owner = excluded.owner or held.expires_at <= ${NOW}
       returning cast(token as text) as token`,
      [key, owner, ttlMs, packMetadata(metadata)],
    );
    const token = rows[0]?.['token'];
    return typeof token === 'string' ? { acquired: true, fencingToken: BigInt(token) } : refusal(query, table, key);
  },

  async renew(query, table, { key, owner, ttlMs }) {
    const rows = await query(
      `update ${table} set expires_at = ${NOW} + ? where lock_key = ? and owner = ? and expires_at > ${NOW} returning 1`,
      [ttlMs, key, owner],
    );
    return rows.length === 1;
  },

  async release(query, table, { key, owner }) {
    const rows = await query(
      `update ${table} set owner = null, expires_at = ${NOW}, metadata = null where lock_key = ? and owner = ? returning 1`,
      [key, owner],
    );
    return rows.length === 1;
  },

  async isHeldBy(query, table, { key, owner }) {
    const rows = await query(`select 1 from ${table} where lock_key = ? and owner = ? and expires_at > ${NOW}`, [
      key,
      owner,
    ]);
    return rows.length === 1;
  },

  async reap(query, table, idleMs) {
    await query(`delete from ${table} where expires_at < ${NOW} - ?`, [idleMs]);
  },

  async raiseFence(query, table, resource, token) {
    const rows = await query(
      `insert into ${table} as fence (resource, token) values (?, cast(? as integer))
       on conflict (resource) do update set token = excluded.token where excluded.token >= fence.token returning 1`,
      [resource, String(token)],
    );
    return rows.length === 1;
  },

  async newestFence(query, table, resource) {
    const [row] = await query(`select cast(token as text) as token from ${table} where resource = ?`, [resource]);
    return typeof row?.['token'] === 'string' ? BigInt(row['token']) : undefined;
  },

  lockForWriting,
  runAlone,
  isBusy: ({ code = '' }) => /^SQLITE_(BUSY|LOCKED)/u.test(code),
  isAboutTable: ({ code }) => code === 'SQLITE_ERROR',
};

async function refusal(query: Query, table: string, key: string): Promise<LeaseAttempt> {
  const [row] = await query(
    `select metadata, acquired_at as since, max(expires_at - ${NOW}, 0) as remaining
     from ${table} where lock_key = ? and owner is not null`,
    [key],
  );
  return refusalOf(row);
}
