import { packMetadata } from '../../../core/index.js';
import { greetedPid, heard, IS_OUR_SESSION, isPostgresClient, runPrepared } from './driver.js';
import { inMs, NOW, NOW_US } from './clock.js';
import { GRANT_MS, handOver, isInLine, isNext, othersInLine, postgresLine, tell } from './waiting-line.js';
import { refusalOf } from '../dialect/refusal.js';
import { streamIn } from '../connections/sockets.js';
import type { SqlDialect } from '../dialect/sql-dialect.js';
import { storedText } from '../tables/stored-key.js';

const BUSY: ReadonlySet<string | undefined> = new Set([
  '40001', // serialization_failure
  '40P01', // deadlock_detected
  '55P03', // lock_not_available
]);

/** undefined_table, undefined_column, insufficient_privilege, invalid_schema_name */
const ABOUT_TABLE: ReadonlySet<string | undefined> = new Set(['42P01', '42703', '42501', '3F000']);

export const postgres: SqlDialect = {
  connections: 2,

  connection(options, sockets) {
    if (options.type !== 'postgres') return options;
    const { replication, extra, ...rest } = options;
    const given = streamIn(extra);
    const stream = given ? (config: unknown) => sockets.adopt(given(config)) : () => sockets.create();
    const ours: object = { ...heard(extra), min: 0, max: 1, stream };
    return { ...rest, ...replication?.master, poolSize: 1, poolErrorHandler: () => undefined, extra: ours };
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
      [String(Math.ceil(requestTimeoutMs)), greetedPid(client)],
    );
    return settings.length > 0 && greetedPid(client) !== null && isPostgresClient(client);
  },

  runPrepared,
  quote: (name) => `"${name.replaceAll('"', '""')}"`,

  lockColumns: {
    lock_key: /^text primary key$/u,
    owner: /^text$/u,
    token: /^bigint$/u,
    expires_at: /^timestamp with time zone$/u,
    acquired_at: /^timestamp with time zone$/u,
    metadata: /^text$/u,
    waiting: /^text\[\]$/u,
  },

  fenceColumns: { resource: /^text primary key$/u, token: /^bigint$/u },

  describe: (query, table) =>
    query(
      `select attname as name, format_type(atttypid, atttypmod) ||
         case when exists (select from pg_index where indrelid = attrelid and indisprimary and indkey::text = attnum::text)
         then ' primary key' else '' end as type
       from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
      [table],
    ),

  async forgets(query) {
    const [row] = await query(
      `select current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit`,
      [],
    );
    const off = ['fsync', 'synchronous_commit'].find((name) => row?.[name] === 'off');
    return off === undefined ? undefined : `a crash can undo grants: ${off} is off, switch it on`;
  },

  // No index covers what changes, so with room on its page a row is updated in place.
  createLockTable: (table) => `
    create table if not exists ${table} (
      lock_key text collate "C" not null primary key,
      owner text,
      token bigint not null,
      expires_at timestamptz not null,
      acquired_at timestamptz not null,
      metadata text,
      waiting text[] not null default '{}'
    ) with (fillfactor = 50)`,

  createFenceTable: (table) =>
    `create table if not exists ${table} (resource text collate "C" not null primary key, token bigint not null)`,

  async tryAcquire(query, table, { key, owner, ttlMs, metadata }) {
    const [row] = await query(
      `with granted as (
         insert into ${table} as held (lock_key, owner, token, expires_at, acquired_at, metadata)
         values ($1, $2, ${NOW_US}, ${inMs('$3')}, ${NOW}, $4)
         on conflict (lock_key) do update set
           token = case when held.owner = excluded.owner then held.token else greatest(held.token + 1, excluded.token) end,
           waiting = ${othersInLine('excluded.owner', 'held.waiting')}, owner = excluded.owner, expires_at = excluded.expires_at,
           acquired_at = excluded.acquired_at, metadata = excluded.metadata
         where held.owner = excluded.owner
           or (held.owner is null or held.expires_at <= ${NOW}) and ${isNext('excluded.owner', 'held.waiting')}
         returning token
       )
       select token::text as token, null as metadata, null as since, null as remaining from granted
       union all
       select null, metadata, (extract(epoch from acquired_at) * 1000)::text,
         greatest(extract(epoch from expires_at - ${NOW}) * 1000, 0)::text
       from ${table} where lock_key = $1 and owner is not null and not exists (select from granted)`,
      [storedText(key), owner, ttlMs, packMetadata(metadata)],
    );
    const token = row?.['token'];
    return typeof token === 'string' ? { acquired: true, fencingToken: BigInt(token) } : refusalOf(row);
  },

  async renew(query, table, { key, owner, ttlMs }) {
    const rows = await query(
      `update ${table} set expires_at = ${inMs('$3')} where lock_key = $1 and owner = $2 and expires_at > ${NOW} returning 1`,
      [storedText(key), owner, ttlMs],
    );
    return rows.length === 1;
  },

  // Locked first, because who leaves the line may be handed the key while it waits for the row.
  async release(query, table, { key, owner }) {
    const [row] = await query(
      `with before as (
         select owner is not distinct from $2 as ours, ${othersInLine('$2')} as line from ${table}
         where lock_key = $1 and (owner = $2 or ${isInLine('$2')}) for update
       ), freed as (
         update ${table} set ${handOver(GRANT_MS)} from before where ours and lock_key = $1
           returning owner as next, substr(waiting[cardinality(waiting)], 15) as last
       ), left_line as (
         update ${table} set waiting = line from before where not ours and lock_key = $1
       )
       select ${tell(table, 'next', 0)}, ${tell(table, 'last', GRANT_MS)} from freed`,
      [storedText(key), owner],
    );
    return row !== undefined;
  },

  async isHeldBy(query, table, { key, owner }) {
    const rows = await query(`select from ${table} where lock_key = $1 and owner = $2 and expires_at > ${NOW}`, [
      storedText(key),
      owner,
    ]);
    return rows.length === 1;
  },

  async reap(query, table, idleMs) {
    const idle = `expires_at < ${inMs('-$1')}`;
    await query(
      `delete from ${table} where lock_key in (select lock_key from ${table} where ${idle} limit 1000) and ${idle}`,
      [idleMs],
    );
  },

  async raiseFence(query, table, resource, token) {
    const rows = await query(
      `insert into ${table} as fence (resource, token) values ($1, $2)
       on conflict (resource) do update set token = excluded.token where excluded.token >= fence.token returning 1`,
      [storedText(resource), String(token)],
    );
    return rows.length === 1;
  },

  async newestFence(query, table, resource) {
    const [row] = await query(`select token::text as token from ${table} where resource = $1`, [storedText(resource)]);
    return typeof row?.['token'] === 'string' ? BigInt(row['token']) : undefined;
  },

  isBusy: ({ code }) => BUSY.has(code),
  isAboutTable: ({ code }) => ABOUT_TABLE.has(code),

  line: postgresLine,
};
