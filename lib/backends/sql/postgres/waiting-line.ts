import { createHash } from 'node:crypto';
import { LockConfigurationError } from '../../../core/index.js';
import { getHandshakePid, isSameSessionSql, isPostgresClient } from './driver.js';
import { millisecondsFromNowSql, NOW_SQL, NOW_MILLISECONDS_SQL, NOW_MICROSECONDS_SQL } from './clock.js';
import type { WaitingLine } from '../dialect/sql-dialect.js';
import { toStoredText } from '../tables/stored-key.js';
import { doubleQuote, unquoteTable } from '../tables/table-name.js';

/** Milliseconds in which a waiter that was handed the key must request it. */
export const HAND_OVER_TTL_MS = 1_000;

/** Shorter hand-over time after a holder has died, or the previous waiter has not requested the key in time. */
const HAND_OVER_TTL_AFTER_EXPIRY_MS = 500;

/** Milliseconds after which a waiter that was not seen loses its place. `WaiterWatch` confirms waiters more often. */
const MAX_WAITER_SILENCE_MS = 5_000;

/** Minimum milliseconds between two records of a waiter that keeps asking. */
const MIN_RECORD_INTERVAL_MS = 1_000;

/** Returns SQL for an entry of `waiting`: when the owner was last seen (13 digits of milliseconds), `|`, the owner. */
const waiterEntrySql = (owner: string): string => `${NOW_MILLISECONDS_SQL}::text || '|' || ${owner}`;
export const ownerOfEntrySql = (entry: string): string => `substr(${entry}, 15)`;
const ENTRY_OWNER_SQL = ownerOfEntrySql('entry');
/** Returns SQL for a past time, as text that compares with entries of `waiting`, which begin with a time. */
const millisecondsAgoSql = (ms: number): string => `(${NOW_MILLISECONDS_SQL} - ${ms})::text collate "C"`;
const wasSeenWithinSql = (ms: number): string => `entry > ${millisecondsAgoSql(ms)}`;

export const isWaitingSql = (owner: string): string =>
  `exists (select from unnest(waiting) as entry where ${ENTRY_OWNER_SQL} = ${owner})`;

export const selectOwnersInLineSql = (waiting: string): string =>
  `array(select ${ENTRY_OWNER_SQL} from unnest(${waiting}) as entry where ${wasSeenWithinSql(MAX_WAITER_SILENCE_MS)})`;

export const isAnyWaiterLiveSql = (waiting: string): string =>
  `${millisecondsAgoSql(MAX_WAITER_SILENCE_MS)} < any(${waiting})`;

/** Returns assignments that give a row for `ttlMs` to the first waiter seen lately. Without one, they free the row. */
export const handOverSql = (waiting: string, ttlMs: number): string => `metadata = null, acquired_at = ${NOW_SQL},
  (owner, waiting, token, expires_at) = (
    select ${ownerOfEntrySql('line[1]')}, line[2:],
      case when line = '{}' then token else greatest(token + 1, ${NOW_MICROSECONDS_SQL}) end,
      case when line = '{}' then ${NOW_SQL} else ${millisecondsFromNowSql(String(ttlMs))} end
    from (select array(select entry from unnest(${waiting}) as entry where ${wasSeenWithinSql(MAX_WAITER_SILENCE_MS)})) as seen(line))`;

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Returns the table's notification channel. Hashes long and unusual names: a channel's name has 63 bytes at most. */
function getChannelName(table: string): string {
  const plainName = unquoteTable(table);
  return /^[\w$.]{1,63}$/u.test(plainName) ? plainName : `distributed_lock_${sha256(table).slice(0, 40)}`;
}

/** Returns SQL for the hash that `hashOwner` returns. */
const ownerHashSql = (owner: string): string => `encode(sha256(convert_to(${owner}, 'UTF8')), 'hex')`;

/** Returns SQL that tells `owner`, where there is one, to request the key after `afterMs`. */
export const notifySql = (table: string, owner: string, afterMs: number): string =>
  `case when ${owner} is not null then pg_notify('${getChannelName(table)}', ${ownerHashSql(owner)} || '|${afterMs}')::text end`;

/** Returns SQL that tells the owners with these hashes to request the key at once. */
export const notifyAllSql = (table: string, ownerHashes: string): string =>
  `(select count(pg_notify('${getChannelName(table)}', name || '|0')) from unnest(${ownerHashes}::text[]) as name)`;

export const postgresWaitingLine: WaitingLine = {
  // If the key is free or its lease has expired, the caller hands the key to the first waiter who was seen lately.
  async joinLine(query, table, key, owner) {
    const [row] = await query(
      `with held as (
         select owner is null or expires_at <= ${NOW_SQL} as free,
           case when ${isWaitingSql('$2')} then array(
             select case ${ENTRY_OWNER_SQL} when $2 then ${waiterEntrySql('$2')} else entry end from unnest(waiting) as entry
           ) else waiting || (${waiterEntrySql('$2')}) end as all_in_line
         from ${table} where lock_key = $1 and owner is distinct from $2 and (owner is null or expires_at <= ${NOW_SQL}
           or not exists (select from unnest(waiting) as entry where ${ENTRY_OWNER_SQL} = $2 and ${wasSeenWithinSql(MIN_RECORD_INTERVAL_MS)}))
         for update
       ), joined as (
         update ${table} set waiting = all_in_line from held where not free and lock_key = $1
       ), handed as (
         update ${table} set ${handOverSql('all_in_line', HAND_OVER_TTL_AFTER_EXPIRY_MS)} from held where free and lock_key = $1
           returning owner as next
       )
       select case next when $2 then 0 else ${HAND_OVER_TTL_AFTER_EXPIRY_MS} end as remaining, ${notifySql(table, 'next', 0)} from handed
       union all
       select greatest(extract(epoch from expires_at - ${NOW_SQL}) * 1000, 0)::float, null
       from ${table} where lock_key = $1 and owner <> $2 and not exists (select from handed)`,
      [toStoredText(key), owner],
    );
    return Number(row?.['remaining'] ?? 0);
  },

  hashOwner: sha256,

  async notify(query, table, owner) {
    await query(`select ${notifySql(table, '$1::text', 0)}`, [owner]);
  },

  async confirmWaiters(query, table, keyByOwner) {
    const rows = await query(
      `with locked as (
         select lock_key from ${table} where lock_key = any($1::text[]) and waiting <> '{}' order by lock_key for update
       ), held as (
         update ${table} as held set waiting = array(
           select case when ${ENTRY_OWNER_SQL} = any($2::text[]) then ${waiterEntrySql(ENTRY_OWNER_SQL)} else entry end
           from unnest(held.waiting) as entry
         ) from locked where held.lock_key = locked.lock_key returning held.*
       )
       select ${ownerHashSql('waiter.owner')} as name from unnest($1::text[], $2::text[]) as waiter(lock_key, owner)
       left join held on held.lock_key = waiter.lock_key
       where held.owner is null or held.owner = waiter.owner or held.expires_at <= ${NOW_SQL} or not exists (
         select from unnest(held.waiting) as entry where ${ENTRY_OWNER_SQL} = waiter.owner)`,
      [Array.from(keyByOwner.values(), toStoredText), [...keyByOwner.keys()]],
    );
    return rows.map(({ name }) => `${String(name)}|0`);
  },

  /** Resolves to false behind a pooler: `listen` would stay on a server session that the pooler lends to others. */
  async listen(query, client, table, deliver) {
    if (!isPostgresClient(client)) {
      throw new LockConfigurationError('the driver of the data source cannot listen', 'dataSource');
    }
    const sameSessionRows = await query(`select where ${isSameSessionSql('$1')}`, [getHandshakePid(client)]);
    if (sameSessionRows.length === 0) return false;
    client.on('notification', ({ payload }: { readonly payload?: string }) => deliver(payload ?? ''));
    await query(`listen ${doubleQuote(getChannelName(table))}`, []);
    return true;
  },
};
