import { packMetadata, pause, systemClock } from '../../../core/index.js';
import { KEYS_PER_PAGE, readKeyPages } from '../dialect/key-pages.js';
import { parseRefusal, parseState } from '../dialect/refusal.js';
import { type LeaseColumns, type LeaseStatements, listColumnNames } from '../dialect/lease-statements.js';
import { NOW_MILLISECONDS_SQL } from './clock.js';

/** Number of rows that one call of `reap` reads. A call takes a few milliseconds and blocks the event loop. */
const REAPED_SLICE_SIZE = 2_000;

const CLOCK_TICK_MS = 1;
/** Tokens are clock times. A clock that is still behind a token after this many ticks was set back. */
const MAX_CLOCK_TICKS = 3;

export function sqliteLeases(columns: LeaseColumns): LeaseStatements {
  const { table, updatedAt, existingTable, ...columnNames } = columns;
  const isOwnRowSql = `${columnNames.key} = ? and ${columnNames.owner} = ?`;
  const { updatedAtNowSql, heldSinceSql, isFreeSql } = existingTable
    ? createExistingTableSql(columns, existingTable.abandonedAfterMs)
    : createOwnTableSql(columns);
  const updatedAtColumns = updatedAt === undefined ? [] : [updatedAt];
  /** Last key of the latest slice. The next slice begins after this key, or at the first row where it is empty. */
  let lastReapedKey = '';
  return {
    /** Inserts nothing for a held key, because even a conflicting insert may use up an autoincrement id. */
    async tryAcquire(query, { key, owner, ttlMs, metadata }) {
      const [grantedRow] = await query(
        `insert into ${table} as held (${listColumnNames(columns)})
         select ?, ?, ${NOW_MILLISECONDS_SQL} * 1000, ${NOW_MILLISECONDS_SQL} + ?, ? ${updatedAtColumns.map(() => `, ${updatedAtNowSql}`).join('')}
         where not exists (select 1 from ${table} as other where ${columnNames.key} = ? and not (other.${columnNames.owner} = ? or ${isFreeSql('other')}))
         on conflict (${columnNames.key}) do update set
           ${columnNames.token} = case when held.${columnNames.owner} = excluded.${columnNames.owner} and held.${columnNames.expiresAt} > ${NOW_MILLISECONDS_SQL} then held.${columnNames.token} else max(coalesce(held.${columnNames.token}, 0) + 1, excluded.${columnNames.token}) end,
           ${[columnNames.owner, columnNames.expiresAt, columnNames.metadata, ...updatedAtColumns].map((column) => `${column} = excluded.${column}`).join(', ')}
         where held.${columnNames.owner} = excluded.${columnNames.owner} or ${isFreeSql('held')}
         returning cast(${columnNames.token} as text) as token`,
        [key, owner, ttlMs, packMetadata(metadata), key, owner],
      );
      const token = grantedRow?.['token'];
      if (typeof token === 'string') return { acquired: true, fencingToken: BigInt(token) };
      const [row] = await query(
        `select ${columnNames.metadata} as metadata, iif(${columnNames.expiresAt} is null, ${columnNames.owner}, null) as legacy_owner,
           max(${columnNames.expiresAt} - ${NOW_MILLISECONDS_SQL}, 0) as remaining, ${heldSinceSql} as since
         from ${table} where ${columnNames.key} = ?`,
        [key],
      );
      return parseRefusal(row);
    },

    async renew(query, { key, owner, ttlMs }) {
      const setUpdatedAtSql = existingTable
        ? updatedAtColumns.map((column) => `, ${column} = ${updatedAtNowSql}`).join('')
        : '';
      const renewedRows = await query(
        `update ${table} set ${columnNames.expiresAt} = ${NOW_MILLISECONDS_SQL} + ? ${setUpdatedAtSql} where ${isOwnRowSql} and ${columnNames.expiresAt} > ${NOW_MILLISECONDS_SQL} returning 1`,
        [ttlMs, key, owner],
      );
      return renewedRows.length === 1;
    },

    /** Deletes a row only after the clock has passed its token: the next token could otherwise be the same. */
    async release(query, { key, owner }) {
      for (let tick = 0; tick < (existingTable ? MAX_CLOCK_TICKS : 0); tick += 1) {
        const deletedRows = await query(
          `delete from ${table} where ${isOwnRowSql} and ${columnNames.token} < ${NOW_MILLISECONDS_SQL} * 1000 returning 1`,
          [key, owner],
        );
        if (deletedRows.length === 1) return true;
        const [row] = await query(`select 1 as held from ${table} where ${isOwnRowSql}`, [key, owner]);
        if (!row) return false;
        await pause(systemClock, CLOCK_TICK_MS);
      }
      const clearOwnerSql = existingTable ? '' : `, ${columnNames.owner} = null, ${columnNames.metadata} = null`;
      const freedRows = await query(
        `update ${table} set ${columnNames.expiresAt} = ${NOW_MILLISECONDS_SQL} ${clearOwnerSql} where ${isOwnRowSql} returning 1`,
        [key, owner],
      );
      return freedRows.length === 1;
    },

    async isHeldBy(query, { key, owner }) {
      const heldRows = await query(
        `select 1 from ${table} where ${isOwnRowSql} and ${columnNames.expiresAt} > ${NOW_MILLISECONDS_SQL}`,
        [key, owner],
      );
      return heldRows.length === 1;
    },

    async look(query, key) {
      const [row] = await query(
        `select ${columnNames.owner} as owner, cast(${columnNames.token} as text) as token, ${columnNames.metadata} as metadata, ${heldSinceSql} as since,
           iif(${columnNames.expiresAt} is null, ${columnNames.owner}, null) as legacy_owner, max(${columnNames.expiresAt} - ${NOW_MILLISECONDS_SQL}, 0) as remaining
         from ${table} as held where ${columnNames.key} = ? and not (${isFreeSql('held')})`,
        [key],
      );
      return parseState(row);
    },

    keys(query, prefix) {
      const selectPageSql = (comparison: string): string => `select ${columnNames.key} as name from ${table} as held
        where ${columnNames.key} ${comparison} ? and substr(${columnNames.key}, 1, length(?)) = ? and not (${isFreeSql('held')})
        order by ${columnNames.key} limit ${KEYS_PER_PAGE}`;
      return readKeyPages(
        prefix,
        (comparison, name) => query(selectPageSql(comparison), [name, prefix, prefix]),
        (name) => name,
      );
    },

    async reap(query, idleMs) {
      const selectSliceEndSql = `select ${columnNames.key} as name from ${table} where ${columnNames.key} > ? order by ${columnNames.key} limit 1 offset ${REAPED_SLICE_SIZE}`;
      const startKey = lastReapedKey;
      const [sliceEnd] = await query(selectSliceEndSql, [startKey]);
      const isIdleSql = `${columnNames.key} > ? and ${columnNames.expiresAt} < ${NOW_MILLISECONDS_SQL} - ?`;
      if (sliceEnd)
        await query(`delete from ${table} where ${isIdleSql} and ${columnNames.key} <= ?`, [
          startKey,
          idleMs,
          sliceEnd['name'],
        ]);
      else await query(`delete from ${table} where ${isIdleSql}`, [startKey, idleMs]);
      lastReapedKey = typeof sliceEnd?.['name'] === 'string' ? sliceEnd['name'] : '';
      return sliceEnd !== undefined;
    },
  };
}

function createOwnTableSql({ owner, expiresAt }: LeaseColumns) {
  const isFreeSql = (row: string): string =>
    `${row}.${owner} is null or ${row}.${expiresAt} <= ${NOW_MILLISECONDS_SQL}`;
  return { updatedAtNowSql: NOW_MILLISECONDS_SQL, heldSinceSql: 'acquired_at', isFreeSql };
}

function createExistingTableSql({ expiresAt, updatedAt }: LeaseColumns, abandonedAfterMs: number) {
  const isAbandonedSql = (row: string): string =>
    Number.isFinite(abandonedAfterMs) && updatedAt !== undefined
      ? `julianday(${row}.${updatedAt}) < julianday('now') - ${abandonedAfterMs} / 86400000.0`
      : '0';
  const isFreeSql = (row: string): string =>
    `coalesce(${row}.${expiresAt} <= ${NOW_MILLISECONDS_SQL}, ${isAbandonedSql(row)}, 0)`;
  const heldSinceSql = updatedAt === undefined ? 'null' : `(julianday(${updatedAt}) - 2440587.5) * 86400000`;
  return { updatedAtNowSql: 'current_timestamp', heldSinceSql, isFreeSql };
}
