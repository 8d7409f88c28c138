import { createHash } from 'node:crypto';
import { LockConfigurationError } from '../../../core/index.js';
import { handshakePid, IS_OUR_SESSION, isPostgresClient } from './driver.js';
import { inMs, NOW, NOW_MS, NOW_US } from './clock.js';
import type { WaitingLine } from '../dialect/sql-dialect.js';
import { storedText } from '../tables/stored-key.js';
import { doubleQuoted, plainTable } from '../tables/table-name.js';

/** How long a waiter that was handed the key has it until it asks for it. */
export const GRANT_MS = 1_000;

/** The same where the one before did not ask, or the holder has died. */
const NEXT_GRANT_MS = 500;

/** A waiter that was not seen for longer loses its place. Live waiters are seen more often: see `LookOut`. */
const SILENT_MS = 5_000;

/** A waiter that asks more often than this is not noted each time. */
const NOTED_MS = 1_000;

/** An entry of `waiting` is when the waiter was last seen, in thirteen digits of milliseconds, a bar, and its owner. */
const entryOf = (owner: string): string => `${NOW_MS}::text || '|' || ${owner}`;
export const ownerOf = (entry: string): string => `substr(${entry}, 15)`;
const OWNER = ownerOf('entry');
const since = (ms: number): string => `(${NOW_MS} - ${ms})::text collate "C"`;
const seenWithin = (ms: number): string => `entry > ${since(ms)}`;

export const isInLine = (owner: string): string =>
  `exists (select from unnest(waiting) as entry where ${OWNER} = ${owner})`;

/** The owners in `waiting` that were seen of late, first come first. */
export const ownersInLine = (waiting: string): string =>
  `array(select ${OWNER} from unnest(${waiting}) as entry where ${seenWithin(SILENT_MS)})`;

/** Whether anybody in line was seen of late. */
export const isAnySeenOf = (waiting: string): string => `${since(SILENT_MS)} < any(${waiting})`;

/** Gives a row to the first of `waiting` who was seen of late, for `grantMs`, or frees it. */
export const handOver = (waiting: string, grantMs: number): string => `metadata = null, acquired_at = ${NOW},
  (owner, waiting, token, expires_at) = (
    select ${ownerOf('line[1]')}, line[2:],
      case when line = '{}' then token else greatest(token + 1, ${NOW_US}) end,
      case when line = '{}' then ${NOW} else ${inMs(String(grantMs))} end
    from (select array(select entry from unnest(${waiting}) as entry where ${seenWithin(SILENT_MS)})) as seen(line))`;

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The channel of a table's notifications. The server takes 63 bytes, and a data source's schema may have any name. */
function channelOf(table: string): string {
  const plain = plainTable(table);
  return /^[\w$.]{1,63}$/u.test(plain) ? plain : `distributed_lock_${sha256(table).slice(0, 40)}`;
}

/** `WaitingLine.nameOf`, in SQL. */
const named = (owner: string): string => `encode(sha256(convert_to(${owner}, 'UTF8')), 'hex')`;

/** Notifies `owner`, where there is one, to ask after `afterMs`. */
export const tell = (table: string, owner: string, afterMs: number): string =>
  `case when ${owner} is not null then pg_notify('${channelOf(table)}', ${named(owner)} || '|${afterMs}')::text end`;

/** Notifies all of a list of names to ask at once. */
export const tellAll = (table: string, names: string): string =>
  `(select count(pg_notify('${channelOf(table)}', name || '|0')) from unnest(${names}::text[]) as name)`;

export const postgresLine: WaitingLine = {
  // A waiter that finds an unconfirmed key hands it to the next one at once, so that dead waiters cost little.
  async join(query, table, key, owner) {
    const [row] = await query(
      `with held as (
         select owner is null or expires_at <= ${NOW} as free,
           case when ${isInLine('$2')} then array(
             select case ${OWNER} when $2 then ${entryOf('$2')} else entry end from unnest(waiting) as entry
           ) else waiting || (${entryOf('$2')}) end as all_in_line
         from ${table} where lock_key = $1 and owner is distinct from $2 and (owner is null or expires_at <= ${NOW}
           or not exists (select from unnest(waiting) as entry where ${OWNER} = $2 and ${seenWithin(NOTED_MS)}))
         for update
       ), joined as (
         update ${table} set waiting = all_in_line from held where not free and lock_key = $1
       ), handed as (
         update ${table} set ${handOver('all_in_line', NEXT_GRANT_MS)} from held where free and lock_key = $1
           returning owner as next
       )
       select case next when $2 then 0 else ${NEXT_GRANT_MS} end as remaining, ${tell(table, 'next', 0)} from handed
       union all
       select greatest(extract(epoch from expires_at - ${NOW}) * 1000, 0)::float, null
       from ${table} where lock_key = $1 and owner <> $2 and not exists (select from handed)`,
      [storedText(key), owner],
    );
    return Number(row?.['remaining'] ?? 0);
  },

  nameOf: sha256,

  async look(query, table, keys) {
    const rows = await query(
      `with seen as (
         select lock_key from ${table} where lock_key = any($1::text[]) and waiting <> '{}' order by lock_key for update
       ), held as (
         update ${table} as held set waiting = array(
           select case when ${OWNER} = any($2::text[]) then ${entryOf(OWNER)} else entry end
           from unnest(held.waiting) as entry
         ) from seen where held.lock_key = seen.lock_key returning held.*
       )
       select ${named('waiter.owner')} as name from unnest($1::text[], $2::text[]) as waiter(lock_key, owner)
       left join held on held.lock_key = waiter.lock_key
       where held.owner is null or held.owner = waiter.owner or held.expires_at <= ${NOW} or not exists (
         select from unnest(held.waiting) as entry where ${OWNER} = waiter.owner)`,
      [Array.from(keys.values(), storedText), [...keys.keys()]],
    );
    return rows.map(({ name }) => `${String(name)}|0`);
  },

  /** Behind a pooler a `listen` would stay on a connection of other sessions. */
  async listen(query, client, table, deliver) {
    if (!isPostgresClient(client)) {
      throw new LockConfigurationError('the driver of the data source cannot listen', 'dataSource');
    }
    const session = await query(`select where ${IS_OUR_SESSION('$1')}`, [handshakePid(client)]);
    if (session.length === 0) return false;
    client.on('notification', ({ payload }: { readonly payload?: string }) => deliver(payload ?? ''));
    await query(`listen ${doubleQuoted(channelOf(table))}`, []);
    return true;
  },
};
