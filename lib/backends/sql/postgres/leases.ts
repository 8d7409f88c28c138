import { type KeyWaiter, MAX_WAITERS, packMetadata } from '../../../core/index.js';
import { type LeaseColumns, type LeaseStatements, MAX_REAPED_ROWS } from '../dialect/lease-statements.js';
import { KEYS_PER_PAGE, readKeyPages } from '../dialect/key-pages.js';
import { parseRefusal, parseState } from '../dialect/refusal.js';
import { fromStoredText, toStoredText } from '../tables/stored-key.js';
import { millisecondsFromNowSql, NOW_SQL, NOW_MICROSECONDS_SQL } from './clock.js';
import { createStatementsOnExistingTable } from './existing-leases.js';
import {
  HAND_OVER_TTL_MS,
  handOverSql,
  isAnyWaiterLiveSql,
  isWaitingSql,
  ownerOfEntrySql,
  selectOwnersInLineSql,
  notifySql,
} from './waiting-line.js';

export function postgresLeases(columns: LeaseColumns): LeaseStatements {
  const { table, updatedAt, existingTable, ...columnNames } = columns;
  const toKeyValue = existingTable ? (key: string) => key : toStoredText;
  const isHeldSql = `${columnNames.key} = $1 and ${columnNames.owner} = $2 and ${columnNames.expiresAt} > ${NOW_SQL}`;
  const setUpdatedAtSql = existingTable && updatedAt !== undefined ? `, ${updatedAt} = ${NOW_SQL}` : '';
  return {
    ...(existingTable
      ? createStatementsOnExistingTable(columns, existingTable.abandonedAfterMs)
      : createStatementsOnOwnTable(table)),

    async renew(query, { key, owner, ttlMs }) {
      const renewedRows = await query(
        `update ${table} set ${columnNames.expiresAt} = ${millisecondsFromNowSql('$3')} ${setUpdatedAtSql} where ${isHeldSql} returning 1`,
        [toKeyValue(key), owner, ttlMs],
      );
      return renewedRows.length === 1;
    },

    async isHeldBy(query, { key, owner }) {
      return (await query(`select from ${table} where ${isHeldSql}`, [toKeyValue(key), owner])).length === 1;
    },

    async reap(query, idleMs) {
      const isIdleSql = `${columnNames.expiresAt} < ${millisecondsFromNowSql('-$1')}`;
      const selectIdleKeysSql = `select ${columnNames.key} from ${table} where ${isIdleSql} limit ${MAX_REAPED_ROWS}`;
      const deletedRows = await query(
        `delete from ${table} where ${columnNames.key} in (${selectIdleKeysSql}) and ${isIdleSql} returning 1`,
        [idleMs],
      );
      return deletedRows.length === MAX_REAPED_ROWS;
    },
  };
}

/** Returns statements on the library's own table. A row with an owner may also list waiters. */
function createStatementsOnOwnTable(table: string): Pick<LeaseStatements, 'tryAcquire' | 'release' | 'look' | 'keys'> {
  // Refuses a free key if one of its waiters was seen lately: `joinLine` then gives the key to the first such waiter.
  const acquireSql = `with granted as (
      insert into ${table} as held (lock_key, owner, token, expires_at, acquired_at, metadata)
      values ($1, $2, ${NOW_MICROSECONDS_SQL}, ${millisecondsFromNowSql('$3')}, ${NOW_SQL}, $4)
      on conflict (lock_key) do update set
        token = case when held.owner = excluded.owner and held.expires_at > ${NOW_SQL} then held.token else greatest(held.token + 1, excluded.token) end,
        waiting = case when held.owner = excluded.owner then held.waiting else '{}' end, owner = excluded.owner,
        expires_at = excluded.expires_at, acquired_at = excluded.acquired_at, metadata = excluded.metadata
      where held.owner = excluded.owner
        or (held.owner is null or held.expires_at <= ${NOW_SQL}) and not ${isAnyWaiterLiveSql('held.waiting')}
      returning token
    )
    select token::text as token, null as metadata, null as since, null as remaining from granted
    union all
    select null, metadata, (extract(epoch from acquired_at) * 1000)::text,
      greatest(extract(epoch from expires_at - ${NOW_SQL}) * 1000, 0)::text
    from ${table} where lock_key = $1 and owner is not null limit 1`;
  const releaseSql = `update ${table} set ${handOverSql('waiting', HAND_OVER_TTL_MS)} where lock_key = $1 and owner = $2
    returning ${notifySql(table, 'owner', 0)}, ${notifySql(table, ownerOfEntrySql('waiting[cardinality(waiting)]'), HAND_OVER_TTL_MS)}`;
  const removeFromLineSql = `update ${table} set waiting = array(
      select entry from unnest(waiting) as entry where ${ownerOfEntrySql('entry')} <> $2)
    where lock_key = $1 and owner is distinct from $2 and ${isWaitingSql('$2')} returning 1`;
  return {
    async tryAcquire(query, { key, owner, ttlMs, metadata }) {
      const [row] = await query(acquireSql, [toStoredText(key), owner, ttlMs, packMetadata(metadata)]);
      const token = row?.['token'];
      return typeof token === 'string' ? { acquired: true, fencingToken: BigInt(token) } : parseRefusal(row);
    },

    async look(query, key) {
      const [row] = await query(
        `select case when expires_at > ${NOW_SQL} then owner end as owner, token::text as token, metadata, ${selectOwnersInLineSql('waiting')} as line,
           (extract(epoch from acquired_at) * 1000)::text as since,
           greatest(extract(epoch from expires_at - ${NOW_SQL}) * 1000, 0)::text as remaining
         from ${table} where lock_key = $1`,
        [toStoredText(key)],
      );
      const ownersOfLine: readonly unknown[] = Array.isArray(row?.['line']) ? row['line'] : [];
      const waiters = ownersOfLine.slice(0, MAX_WAITERS).map((owner): KeyWaiter => ({ owner: String(owner) }));
      return { ...parseState(typeof row?.['owner'] === 'string' ? row : undefined), waiters };
    },

    keys(query, prefix) {
      const selectPageSql = (comparison: string): string => `select lock_key as name from ${table}
        where lock_key ${comparison} $1 and starts_with(lock_key, $2) and owner is not null and expires_at > ${NOW_SQL}
        order by lock_key limit ${KEYS_PER_PAGE}`;
      const storedPrefix = toStoredText(prefix);
      return readKeyPages(
        storedPrefix,
        (comparison, name) => query(selectPageSql(comparison), [name, storedPrefix]),
        fromStoredText,
      );
    },

    // A waiter that is no longer in line may have been handed the key meanwhile. The key is then released.
    async release(query, { key, owner }) {
      const values = [toStoredText(key), owner];
      if ((await query(releaseSql, values)).length === 1) return true;
      return (await query(removeFromLineSql, values)).length === 0 && (await query(releaseSql, values)).length === 1;
    },
  };
}
