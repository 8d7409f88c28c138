import { type KeyWaiter, MAX_WAITERS, packMetadata } from '../../../core/index.js';
import { type LeaseColumns, type LeaseStatements, REAPED_AT_ONCE } from '../dialect/lease-statements.js';
import { KEYS_A_PAGE, keyPages } from '../dialect/key-pages.js';
import { readRefusal, readState } from '../dialect/refusal.js';
import { keyInText, storedText } from '../tables/stored-key.js';
import { inMs, NOW, NOW_US } from './clock.js';
import { existingLeases } from './existing-leases.js';
import { GRANT_MS, handOver, isAnySeenOf, isInLine, ownerOf, ownersInLine, tell } from './waiting-line.js';

export function postgresLeases(columns: LeaseColumns): LeaseStatements {
  const { rows, updatedAt, existing, ...its } = columns;
  const keyOf = existing ? (key: string) => key : storedText;
  const isHeld = `${its.key} = $1 and ${its.owner} = $2 and ${its.expiresAt} > ${NOW}`;
  const touched = existing && updatedAt !== undefined ? `, ${updatedAt} = ${NOW}` : '';
  return {
    ...(existing ? existingLeases(columns, existing.abandonedAfterMs) : ownLeases(rows)),

    async renew(query, { key, owner, ttlMs }) {
      const renewed = await query(
        `update ${rows} set ${its.expiresAt} = ${inMs('$3')} ${touched} where ${isHeld} returning 1`,
        [keyOf(key), owner, ttlMs],
      );
      return renewed.length === 1;
    },

    async isHeldBy(query, { key, owner }) {
      return (await query(`select from ${rows} where ${isHeld}`, [keyOf(key), owner])).length === 1;
    },

    async reap(query, idleMs) {
      const idle = `${its.expiresAt} < ${inMs('-$1')}`;
      const some = `select ${its.key} from ${rows} where ${idle} limit ${REAPED_AT_ONCE}`;
      const gone = await query(`delete from ${rows} where ${its.key} in (${some}) and ${idle} returning 1`, [idleMs]);
      return gone.length === REAPED_AT_ONCE;
    },
  };
}

/** In a table of the migration's, whose rows keep those who wait in line. A row without an owner has nobody in line. */
function ownLeases(table: string): Pick<LeaseStatements, 'tryAcquire' | 'release' | 'look' | 'keys'> {
  // A key whose lease has ended goes to those in line, by `join`, unless all of them were silent for too long.
  const take = `with granted as (
      insert into ${table} as held (lock_key, owner, token, expires_at, acquired_at, metadata)
      values ($1, $2, ${NOW_US}, ${inMs('$3')}, ${NOW}, $4)
      on conflict (lock_key) do update set
        token = case when held.owner = excluded.owner and held.expires_at > ${NOW} then held.token else greatest(held.token + 1, excluded.token) end,
        waiting = case when held.owner = excluded.owner then held.waiting else '{}' end, owner = excluded.owner,
        expires_at = excluded.expires_at, acquired_at = excluded.acquired_at, metadata = excluded.metadata
      where held.owner = excluded.owner
        or (held.owner is null or held.expires_at <= ${NOW}) and not ${isAnySeenOf('held.waiting')}
      returning token
    )
    select token::text as token, null as metadata, null as since, null as remaining from granted
    union all
    select null, metadata, (extract(epoch from acquired_at) * 1000)::text,
      greatest(extract(epoch from expires_at - ${NOW}) * 1000, 0)::text
    from ${table} where lock_key = $1 and owner is not null limit 1`;
  const free = `update ${table} set ${handOver('waiting', GRANT_MS)} where lock_key = $1 and owner = $2
    returning ${tell(table, 'owner', 0)}, ${tell(table, ownerOf('waiting[cardinality(waiting)]'), GRANT_MS)}`;
  const leave = `update ${table} set waiting = array(
      select entry from unnest(waiting) as entry where ${ownerOf('entry')} <> $2)
    where lock_key = $1 and owner is distinct from $2 and ${isInLine('$2')} returning 1`;
  return {
    async tryAcquire(query, { key, owner, ttlMs, metadata }) {
      const [row] = await query(take, [storedText(key), owner, ttlMs, packMetadata(metadata)]);
      const token = row?.['token'];
      return typeof token === 'string' ? { acquired: true, fencingToken: BigInt(token) } : readRefusal(row);
    },

    async look(query, key) {
      const [row] = await query(
        `select case when expires_at > ${NOW} then owner end as owner, token::text as token, metadata, ${ownersInLine('waiting')} as line,
           (extract(epoch from acquired_at) * 1000)::text as since,
           greatest(extract(epoch from expires_at - ${NOW}) * 1000, 0)::text as remaining
         from ${table} where lock_key = $1`,
        [storedText(key)],
      );
      const line: readonly unknown[] = Array.isArray(row?.['line']) ? row['line'] : [];
      const waiters = line.slice(0, MAX_WAITERS).map((owner): KeyWaiter => ({ owner: String(owner) }));
      return { ...readState(typeof row?.['owner'] === 'string' ? row : undefined), waiters };
    },

    keys(query, prefix) {
      const page = (comparison: string): string => `select lock_key as name from ${table}
        where lock_key ${comparison} $1 and starts_with(lock_key, $2) and owner is not null and expires_at > ${NOW}
        order by lock_key limit ${KEYS_A_PAGE}`;
      const beginning = storedText(prefix);
      return keyPages(beginning, (comparison, name) => query(page(comparison), [name, beginning]), keyInText);
    },

    // An owner that leaves the line may be handed the key while it waits for the row.
    async release(query, { key, owner }) {
      const values = [storedText(key), owner];
      if ((await query(free, values)).length === 1) return true;
      return (await query(leave, values)).length === 0 && (await query(free, values)).length === 1;
    },
  };
}
