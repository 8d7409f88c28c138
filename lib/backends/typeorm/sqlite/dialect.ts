import type { DataSourceOptions } from 'typeorm';
import { LockConfigurationError } from '../../../core/index.js';
import type { SqlDialect } from '../dialect/sql-dialect.js';
import { doubleQuoted, partsOf } from '../tables/table-name.js';
import { sqliteClaims } from './claims.js';
import { lockForWriting, runAlone } from './driver.js';
import { sqliteLeases } from './leases.js';

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

  quote: doubleQuoted,

  types: {
    key: ['text', /^text primary key$/u],
    owner: ['text', /^text$/u],
    // Any type with these letters has the same affinity.
    token: ['integer', /int/u],
    time: ['integer', /int/u],
    metadata: ['text', /text/u],
  },

  tableOptions: { lock: '', fence: '' },

  describe(query, table) {
    const { name } = partsOf(table);
    return query(
      `select name, lower(type) as type, pk = 1 as primary_key,
         "notnull" and dflt_value is null and not (pk = 1 and lower(type) = 'integer') as required,
         exists (select 1 from pragma_index_list(?) as list where list."unique" and not list.partial
           and (select group_concat(info.name) from pragma_index_info(list.name) as info) = columns.name) as "unique"
       from pragma_table_info(?) as columns`,
      [name, name],
    );
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
  busy: /^SQLITE_(BUSY|LOCKED)/u,
  aboutTable: /^SQLITE_ERROR$/u,
  leases: sqliteLeases,
  claims: sqliteClaims,

  existingTable: {
    text: /char|text|clob/u,
    updatedAt: /date|time|text/u,
    writes: () => /^[^]*$/u,
  },
};
