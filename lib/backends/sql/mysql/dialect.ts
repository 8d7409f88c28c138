import { DatabaseError, WRITABLE_ADVICE } from '../connections/database-error.js';
import { isTrue } from '../connections/query.js';
import type { SqlDialect } from '../dialect/sql-dialect.js';
import { STORED_KEY_BYTES } from '../tables/stored-key.js';
import { backQuote, splitTableName } from '../tables/table-name.js';
import { mysqlClaims } from './claims.js';
import { getHandshakeId } from './driver.js';
import { mysqlFence } from './fence.js';
import { mysqlLeases } from './leases.js';
import { IS_READ_ONLY_SQL } from './read-only.js';
import { mysqlRowLocks } from './row-locks.js';
import { mysqlSessionLocks } from './session-locks.js';

export const mysqlDialect: SqlDialect = {
  maxConnections: 2,

  hasSchemas: true,

  /**
   * Limits waits for locks, because a late statement would lock a key for a caller that no longer waits. Keeps idle
   * connections for eight hours, because their end would be reported as a failure of the database. Changes nothing
   * without a handshake id, because a pooler may pass the settings on to other sessions. Resolves to `false`, because
   * no statement stays prepared in the session.
   */
  async prepareConnection(query, requestTimeoutMs, client) {
    if (getHandshakeId(client) === undefined) return false;
    const seconds = Math.max(1, Math.floor(requestTimeoutMs / 1000));
    await query(
      `set session autocommit = 1, session wait_timeout = 28800,
         session innodb_lock_wait_timeout = ${seconds}, session lock_wait_timeout = ${seconds}`,
      [],
    );
    return false;
  },

  quote: backQuote,

  columnTypes: {
    key: {
      sql: `varbinary(${STORED_KEY_BYTES})`,
      pattern: new RegExp(`^varbinary\\(${STORED_KEY_BYTES}\\) primary key$`, 'u'),
    },
    owner: { sql: 'varbinary(255)', pattern: /^varbinary\(255\)$/u },
    token: { sql: 'bigint', pattern: /^bigint/u },
    time: { sql: 'datetime(6)', pattern: /^datetime\(6\)$/u },
    metadata: { sql: 'text character set utf8mb4', pattern: /text$/u },
  },

  tableOptions: { lock: ' engine = InnoDB', fence: ' engine = InnoDB' },

  describeColumns(query, table) {
    const { schema, name } = splitTableName(table);
    return query(
      `select column_name as name, column_type as type, column_key = 'PRI' as primary_key, character_set_name as charset,
         is_nullable = 'NO' and column_default is null and extra not like '%auto_increment%' as required,
         column_name in (
           select min(column_name) from information_schema.statistics
           where table_schema = coalesce(?, database()) and table_name = ? and non_unique = 0
           group by index_name having count(*) = 1 and max(sub_part) is null
         ) as \`unique\`
       from information_schema.columns where table_schema = coalesce(?, database()) and table_name = ?`,
      [schema, name, schema, name],
    );
  },

  async assertPrimary(query) {
    const [row] = await query(`select ${IS_READ_ONLY_SQL} as is_read_only`, []);
    if (!isTrue(row?.['is_read_only'])) return;
    const message = `the server is running with read_only, as replicas do: ${WRITABLE_ADVICE}`;
    throw new DatabaseError(message, 'ER_OPTION_PREVENTS_STATEMENT');
  },

  async findUnfitEngine(query, table) {
    const { schema, name } = splitTableName(table);
    const [row] = await query(
      `select engine from information_schema.tables where table_schema = coalesce(?, database()) and table_name = ?`,
      [schema, name],
    );
    // A view has no engine.
    const engine = row?.['engine'] ?? row?.['ENGINE'];
    return typeof engine === 'string' && engine !== 'InnoDB' ? engine : undefined;
  },

  /** Only servers that can be in such a cluster have these variables. */
  async findMultiPrimaryCluster(query) {
    const rows = await query(
      `show global variables where variable_name in ('wsrep_on', 'group_replication_single_primary_mode')`,
      [],
    );
    const values = new Map(rows.map((row) => [row['Variable_name'], row['Value']]));
    if (values.get('wsrep_on') === 'ON') return 'a Galera cluster (wsrep_on)';
    const isMultiPrimary = values.get('group_replication_single_primary_mode') === 'OFF';
    return isMultiPrimary ? 'a replication group with several primaries' : undefined;
  },

  async durabilityWarning(query, table) {
    const engine = await this.findUnfitEngine?.(query, table);
    if (engine !== undefined) return `a crash can undo grants: the table's engine is ${engine}, make it InnoDB`;
    const settingsSql =
      'innodb_flush_log_at_trx_commit as flush, @@global.log_bin as log_bin, @@global.sync_binlog as sync';
    const [row] = await query(`select @@global.${settingsSql}`, []);
    const { flush, log_bin: logBin, sync } = row ?? {};
    // The value 3 of MariaDB flushes more often than 1.
    if (flush !== undefined && ![1, 3].includes(Number(flush))) {
      return `a crash can undo grants: innodb_flush_log_at_trx_commit is ${Number(flush)}, set it to 1`;
    }
    const isBinlogUnsafe = Number(logBin) === 1 && Number(sync) !== 1;
    return isBinlogUnsafe ? `a crash can undo grants: sync_binlog is ${Number(sync)}, set it to 1` : undefined;
  },

  fence: mysqlFence,
  busyCodePattern: /^ER_(LOCK_DEADLOCK|LOCK_WAIT_TIMEOUT|CHECKREAD)$/u,
  tableErrorCodePattern: /^ER_(NO_SUCH_TABLE|BAD_FIELD_ERROR|TABLEACCESS_DENIED_ERROR|COLUMNACCESS_DENIED_ERROR)$/u,
  leases: mysqlLeases,
  claims: mysqlClaims,

  existingTable: {
    textTypePattern: /^(varchar|char|tinytext|text).*$/u,
    updatedAtTypePattern: /^(timestamp|datetime|date\b).*$/u,
    getStorablePattern(charset) {
      if (charset === 'utf8mb4') return /^[^]*$/u;
      return charset === 'utf8mb3' || charset === 'utf8' ? /^[\0-\uffff]*$/u : /^[\0-\x7f]*$/u;
    },
  },

  rowLocks: mysqlRowLocks,
  sessionLocks: mysqlSessionLocks,
};
