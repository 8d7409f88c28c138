import { streamIn } from '../connections/sockets.js';
import type { SqlDialect } from '../dialect/sql-dialect.js';
import { storedText } from '../tables/stored-key.js';
import { doubleQuoted } from '../tables/table-name.js';
import { postgresClaims } from './claims.js';
import { handshakePid, heard, IS_OUR_SESSION, isPostgresClient, runPrepared } from './driver.js';
import { postgresLeases } from './leases.js';
import { postgresRowLocks } from './row-locks.js';
import { postgresSessionLocks } from './session-locks.js';
import { postgresLine } from './waiting-line.js';

/** Options of `pg`'s pool: no number of uses, age or pause ends a connection of the locks. */
const KEEP_OPEN = { maxUses: Infinity, maxLifetimeSeconds: 0, idleTimeoutMillis: 0 };

export const postgres: SqlDialect = {
  connections: 2,

  connection(options, sockets) {
    if (options.type !== 'postgres') return options;
    const { replication, extra, ...rest } = options;
    const given = streamIn(extra);
    const stream = given ? (config: unknown) => sockets.adopt(given(config)) : () => sockets.create();
    const ours: object = { ...heard(extra), ...KEEP_OPEN, min: 0, max: 1, stream };
    const master = { ...rest, ...replication?.master };
    // TypeORM takes `pg-native` where that is installed, which makes its own sockets.
    return { ...master, nativeDriver: false, poolSize: 1, poolErrorHandler: () => undefined, extra: ours };
  },

  /**
   * The server ends statements that we no longer wait for: a late one would lock a key without a holder. A commit that
   * a crash can undo would let a second holder in. An idle connection that the server ends puts the locks in doubt for
   * a moment. Behind a pooler these settings would stay for the application's next session: there the server's own
   * hold.
   */
  async prepare(query, requestTimeoutMs, client) {
    const settings = await query(
      `select set_config('statement_timeout', $1, false), set_config('default_transaction_isolation', 'read committed', false),
         case current_setting('synchronous_commit') when 'off' then set_config('synchronous_commit', 'on', false) end,
         (select set_config(name, '0', false) from pg_settings where name = 'idle_session_timeout')
       where ${IS_OUR_SESSION('$2')}`,
      [String(Math.ceil(requestTimeoutMs)), handshakePid(client)],
    );
    return settings.length > 0 && handshakePid(client) !== null && isPostgresClient(client);
  },

  runPrepared,
  quote: doubleQuoted,

  types: {
    key: ['text collate "C"', /^text primary key$/u],
    owner: ['text', /^text$/u],
    token: ['bigint', /^bigint$/u],
    time: ['timestamptz', /^timestamp with time zone$/u],
    metadata: ['text', /^text$/u],
    waiting: [`text[] default '{}'`, /^text\[\]$/u],
  },

  // No index covers what changes, so with room on its page a row is updated in place.
  tableOptions: { lock: ' with (fillfactor = 50)', fence: '' },

  describe: (query, table) =>
    query(
      `select attname as name, format_type(atttypid, atttypmod) as type,
         exists (select from pg_index where indrelid = attrelid and indisprimary and indkey::text = attnum::text) as primary_key,
         attnotnull and not atthasdef and attidentity = '' as required,
         exists (select from pg_index where indrelid = attrelid and indisunique and indpred is null and indexprs is null
           and indnkeyatts = 1 and indkey[0] = attnum and indimmediate) as unique
       from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
      [table],
    ),

  /** The server tells what a policy says only when a statement meets it. Without a policy a statement finds nothing. */
  async hiddenRows(query, table) {
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
    const off = ['fsync', 'synchronous_commit'].find((name) => row?.[name] === 'off');
    return off === undefined ? undefined : `a crash can undo grants: ${off} is off, switch it on`;
  },

  async raiseFence(query, table, resource, token) {
    const rows = await query(
      `insert into ${table} as fence (resource, token) values ($1, $2)
       on conflict (resource) do update set token = excluded.token where excluded.token >= fence.token returning 1`,
      [storedText(resource), String(token)],
    );
    return rows.length === 1;
  },

  async newestFence(query, table, resource, shared = false) {
    const [row] = await query(
      `select token::text as token from ${table} where resource = $1${shared ? ' for share' : ''}`,
      [storedText(resource)],
    );
    return typeof row?.['token'] === 'string' ? BigInt(row['token']) : undefined;
  },

  // serialization_failure, deadlock_detected, lock_not_available
  busy: /^(40001|40P01|55P03)$/u,
  // undefined_table, undefined_column, insufficient_privilege, invalid_schema_name
  aboutTable: /^(42P01|42703|42501|3F000)$/u,
  leases: postgresLeases,
  claims: postgresClaims,

  existingTable: {
    text: /^(text|character varying.*)$/u,
    updatedAt: /^(timestamp.*|date)$/u,
    writes: () => /^[^\0]*$/u,
  },

  rowLocks: postgresRowLocks,
  sessionLocks: postgresSessionLocks,
  line: postgresLine,
};
