import type { SqlDialect } from '../dialect/sql-dialect.js';
import { doubleQuote, splitTableName } from '../tables/table-name.js';
import { sqliteClaims } from './claims.js';
import { BUSY_TIMEOUT_MS, runInWriteTransaction } from './driver.js';
import { sqliteFence } from './fence.js';
import { sqliteLeases } from './leases.js';

export const sqliteDialect: SqlDialect = {
  maxConnections: 1,

  hasSchemas: false,

  /**
   * Has each commit flushed to the disk. By default, better-sqlite3 does not flush in WAL mode, and a power failure can
   * undo a commit.
   */
  async prepareConnection(query) {
    await query(`pragma busy_timeout = ${BUSY_TIMEOUT_MS}`, []);
    await query('pragma synchronous = full', []);
    return false;
  },

  quote: doubleQuote,

  columnTypes: {
    key: { sql: 'text', pattern: /^text primary key$/u },
    owner: { sql: 'text', pattern: /^text$/u },
    // SQLite gives every type with `int` in its name the same affinity.
    token: { sql: 'integer', pattern: /int/u },
    time: { sql: 'integer', pattern: /int/u },
    metadata: { sql: 'text', pattern: /text/u },
  },

  tableOptions: { lock: '', fence: '' },

  describeColumns(query, table) {
    const { name } = splitTableName(table);
    return query(
      `select name, lower(type) as type, pk = 1 as primary_key,
         "notnull" and dflt_value is null and not (pk = 1 and lower(type) = 'integer') as required,
         exists (select 1 from pragma_index_list(?) as list where list."unique" and not list.partial
           and (select group_concat(info.name) from pragma_index_info(list.name) as info) = columns.name) as "unique"
       from pragma_table_info(?) as columns`,
      [name, name],
    );
  },

  fence: sqliteFence,
  runStatementSafely: runInWriteTransaction,
  busyCodePattern: /^SQLITE_(BUSY|LOCKED)/u,
  tableErrorCodePattern: /^SQLITE_ERROR$/u,
  leases: sqliteLeases,
  claims: sqliteClaims,

  existingTable: {
    textTypePattern: /char|text|clob/u,
    updatedAtTypePattern: /date|time|text/u,
    getStorablePattern: () => /^[^]*$/u,
  },
};
