import type { SqlDialect } from '../dialect/sql-dialect.js';
import { doubleQuote } from '../tables/table-name.js';
import { postgresClaims } from './claims.js';
import { getHandshakePid, isSameSessionSql, isPostgresClient, runPrepared } from './driver.js';
import { postgresFence } from './fence.js';
import { postgresLeases } from './leases.js';
import { postgresRowLocks } from './row-locks.js';
import { postgresSessionLocks } from './session-locks.js';
import { postgresWaitingLine } from './waiting-line.js';

export const postgresDialect: SqlDialect = {
  maxConnections: 2,

  hasSchemas: true,

  /**
   * Limits the time of statements, because a late statement would lock a key for a caller that no longer waits.
   * Switches `synchronous_commit` on, because a crash could otherwise undo a commit, and let a second holder in.
   * Switches off the limit for idle sessions, whose end would be reported as a failure of the database. Changes nothing
   * behind a pooler, which would pass these settings on to other sessions.
   */
  async prepareConnection(query, requestTimeoutMs, client) {
    const settings = await query(
      `select set_config('statement_timeout', $1, false), set_config('default_transaction_isolation', 'read committed', false),
         case current_setting('synchronous_commit') when 'off' then set_config('synchronous_commit', 'on', false) end,
         (select set_config(name, '0', false) from pg_settings where name = 'idle_session_timeout')
       where ${isSameSessionSql('$2')}`,
      [String(Math.ceil(requestTimeoutMs)), getHandshakePid(client)],
    );
    return settings.length > 0 && getHandshakePid(client) !== null && isPostgresClient(client);
  },

  runPrepared,
  quote: doubleQuote,

  columnTypes: {
    key: { sql: 'text collate "C"', pattern: /^text primary key$/u },
    owner: { sql: 'text', pattern: /^text$/u },
    token: { sql: 'bigint', pattern: /^bigint$/u },
    time: { sql: 'timestamptz', pattern: /^timestamp(\(6\))? with time zone$/u },
    metadata: { sql: 'text', pattern: /^text$/u },
    waiting: { sql: `text[] default '{}'`, pattern: /^text\[\]$/u },
  },

  // No index covers the columns that change: with free space on the page, an update writes no index entries.
  tableOptions: { lock: ' with (fillfactor = 50)', fence: '' },

  describeColumns: (query, table) =>
    query(
      `select attname as name, format_type(atttypid, atttypmod) as type,
         exists (select from pg_index where indrelid = attrelid and indisprimary and indkey::text = attnum::text) as primary_key,
         attnotnull and not atthasdef and attidentity = '' as required,
         exists (select from pg_index where indrelid = attrelid and indisunique and indpred is null and indexprs is null
           and indnkeyatts = 1 and indkey[0] = attnum and indimmediate) as unique
       from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
      [table],
    ),

  /** Looks for commands that no policy allows: a `select` or an `update` then finds no row, and reports no error. */
  async hiddenRowsWarning(query, table) {
    const [row] = await query(
      `select current_user as role, string_agg(command, ', ') as commands
       from (values ('r', 'select'), ('a', 'insert'), ('w', 'update')) as needed (code, command)
       where row_security_active(to_regclass($1)) and not exists (
         select from pg_policy where polrelid = to_regclass($1) and polpermissive and polcmd in ('*', code)
           and exists (select from unnest(polroles) as role where role = 0 or pg_has_role(role, 'usage')))`,
      [table],
    );
    const commands = row?.['commands'];
    if (typeof commands !== 'string') return undefined;
    return `it has row-level security, and no policy lets the role ${String(row?.['role'])} ${commands}`;
  },

  async durabilityWarning(query, table) {
    const [row] = await query(
      `select current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit,
         (select relpersistence::text from pg_class where oid = to_regclass($1)) as persistence`,
      [table],
    );
    if (row?.['persistence'] === 'u') return 'a crash empties the table, which is UNLOGGED: alter table … set logged';
    const disabledSetting = ['fsync', 'synchronous_commit'].find((name) => row?.[name] === 'off');
    return disabledSetting === undefined
      ? undefined
      : `a crash can undo grants: ${disabledSetting} is off, switch it on`;
  },

  fence: postgresFence,
  // serialization_failure, deadlock_detected, lock_not_available
  busyCodePattern: /^(40001|40P01|55P03)$/u,
  // undefined_table, undefined_column, insufficient_privilege, invalid_schema_name
  tableErrorCodePattern: /^(42P01|42703|42501|3F000)$/u,
  leases: postgresLeases,
  claims: postgresClaims,

  existingTable: {
    textTypePattern: /^(text|character varying.*)$/u,
    updatedAtTypePattern: /^(timestamp.*|date)$/u,
    getStorablePattern: () => /^[^\0]*$/u,
  },

  rowLocks: postgresRowLocks,
  sessionLocks: postgresSessionLocks,
  waitingLine: postgresWaitingLine,
};
