import type { SqlDialect } from '../dialect/sql-dialect.js';
import { doubleQuoted, partsOf } from '../tables/table-name.js';
import { sqliteClaims } from './claims.js';
import { BUSY_TIMEOUT_MS, runAlone } from './driver.js';
import { sqliteFence } from './fence.js';
import { sqliteLeases } from './leases.js';

/** SQLite in a file, also shared by several processes of one host (never over a network file system). */
export const sqliteDialect: SqlDialect = {
  connections: 1,

  hasSchemas: false,

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

  fence: sqliteFence,
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
