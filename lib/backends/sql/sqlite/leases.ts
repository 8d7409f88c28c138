import { packMetadata, pause, systemClock } from '../../../core/index.js';
import { KEYS_A_PAGE, keyPages } from '../dialect/key-pages.js';
import { readRefusal, readState } from '../dialect/refusal.js';
import { type LeaseColumns, type LeaseStatements, namesOf } from '../dialect/lease-statements.js';
import { NOW } from './clock.js';

/** Number of rows that the reaper looks at in one round: a few milliseconds. */
const LOOKED_AT_ONCE = 2_000;

const TICK_MS = 1;
/** Ticks of the clock to wait for, before it is taken for one that was set back. */
const TICKS = 3;

export function sqliteLeases(columns: LeaseColumns): LeaseStatements {
  const { rows, updatedAt, existing, ...its } = columns;
  const isOurs = `${its.key} = ? and ${its.owner} = ?`;
  const { now, since, isOver } = existing ? ofOlderPrograms(columns, existing.abandonedAfterMs) : ofOurs(columns);
  const written = updatedAt === undefined ? [] : [updatedAt];
  let reapedUpTo = '';
  return {
    /** Not even tried where somebody has the key: each insert that conflicts may use up a number of the row's. */
    async tryAcquire(query, { key, owner, ttlMs, metadata }) {
      const [granted] = await query(
        `insert into ${rows} as held (${namesOf(columns)})
         select ?, ?, ${NOW} * 1000, ${NOW} + ?, ? ${written.map(() => `, ${now}`).join('')}
         where not exists (select 1 from ${rows} as other where ${its.key} = ? and not (other.${its.owner} = ? or ${isOver('other')}))
         on conflict (${its.key}) do update set
           ${its.token} = case when held.${its.owner} = excluded.${its.owner} and held.${its.expiresAt} > ${NOW} then held.${its.token} else max(coalesce(held.${its.token}, 0) + 1, excluded.${its.token}) end,
           ${[its.owner, its.expiresAt, its.metadata, ...written].map((column) => `${column} = excluded.${column}`).join(', ')}
         where held.${its.owner} = excluded.${its.owner} or ${isOver('held')}
         returning cast(${its.token} as text) as token`,
        [key, owner, ttlMs, packMetadata(metadata), key, owner],
      );
      const token = granted?.['token'];
      if (typeof token === 'string') return { acquired: true, fencingToken: BigInt(token) };
      const [row] = await query(
        `select ${its.metadata} as metadata, iif(${its.expiresAt} is null, ${its.owner}, null) as stranger,
           max(${its.expiresAt} - ${NOW}, 0) as remaining, ${since} as since
         from ${rows} where ${its.key} = ?`,
        [key],
      );
      return readRefusal(row);
    },

    async renew(query, { key, owner, ttlMs }) {
      const touched = existing ? written.map((column) => `, ${column} = ${now}`).join('') : '';
      const renewed = await query(
        `update ${rows} set ${its.expiresAt} = ${NOW} + ? ${touched} where ${isOurs} and ${its.expiresAt} > ${NOW} returning 1`,
        [ttlMs, key, owner],
      );
      return renewed.length === 1;
    },

    /** The clock counts milliseconds: within the same one, the next token could be that of a deleted row again. */
    async release(query, { key, owner }) {
      for (let tick = 0; tick < (existing ? TICKS : 0); tick += 1) {
        const gone = await query(`delete from ${rows} where ${isOurs} and ${its.token} < ${NOW} * 1000 returning 1`, [
          key,
          owner,
        ]);
        if (gone.length === 1) return true;
        const [row] = await query(`select 1 as held from ${rows} where ${isOurs}`, [key, owner]);
        if (!row) return false;
        await pause(systemClock, TICK_MS);
      }
      const free = existing ? '' : `, ${its.owner} = null, ${its.metadata} = null`;
      const freed = await query(`update ${rows} set ${its.expiresAt} = ${NOW} ${free} where ${isOurs} returning 1`, [
        key,
        owner,
      ]);
      return freed.length === 1;
    },

    async isHeldBy(query, { key, owner }) {
      const held = await query(`select 1 from ${rows} where ${isOurs} and ${its.expiresAt} > ${NOW}`, [key, owner]);
      return held.length === 1;
    },

    async look(query, key) {
      const [row] = await query(
        `select ${its.owner} as owner, cast(${its.token} as text) as token, ${its.metadata} as metadata, ${since} as since,
           iif(${its.expiresAt} is null, ${its.owner}, null) as stranger, max(${its.expiresAt} - ${NOW}, 0) as remaining
         from ${rows} as held where ${its.key} = ? and not (${isOver('held')})`,
        [key],
      );
      return readState(row);
    },

    keys(query, prefix) {
      const page = (comparison: string): string => `select ${its.key} as name from ${rows} as held
        where ${its.key} ${comparison} ? and substr(${its.key}, 1, length(?)) = ? and not (${isOver('held')})
        order by ${its.key} limit ${KEYS_A_PAGE}`;
      return keyPages(
        prefix,
        (comparison, name) => query(page(comparison), [name, prefix, prefix]),
        (name) => name,
      );
    },

    /** The driver blocks the event loop, so each round looks at some rows only, and the next one goes on behind them. */
    async reap(query, idleMs) {
      const slice = `select ${its.key} as name from ${rows} where ${its.key} > ? order by ${its.key} limit 1 offset ${LOOKED_AT_ONCE}`;
      const from = reapedUpTo;
      const [next] = await query(slice, [from]);
      const isIdle = `${its.key} > ? and ${its.expiresAt} < ${NOW} - ?`;
      if (next) await query(`delete from ${rows} where ${isIdle} and ${its.key} <= ?`, [from, idleMs, next['name']]);
      else await query(`delete from ${rows} where ${isIdle}`, [from, idleMs]);
      reapedUpTo = typeof next?.['name'] === 'string' ? next['name'] : '';
      return next !== undefined;
    },
  };
}

/** The present time in `updatedAt`, how it is read, and whether a row counts no more. */
function ofOurs({ owner, expiresAt }: LeaseColumns) {
  const isOver = (row: string): string => `${row}.${owner} is null or ${row}.${expiresAt} <= ${NOW}`;
  return { now: NOW, since: 'acquired_at', isOver };
}

function ofOlderPrograms({ expiresAt, updatedAt }: LeaseColumns, abandonedAfterMs: number) {
  const isAbandoned = (row: string): string =>
    Number.isFinite(abandonedAfterMs) && updatedAt !== undefined
      ? `julianday(${row}.${updatedAt}) < julianday('now') - ${abandonedAfterMs} / 86400000.0`
      : '0';
  const isOver = (row: string): string => `coalesce(${row}.${expiresAt} <= ${NOW}, ${isAbandoned(row)}, 0)`;
  const since = updatedAt === undefined ? 'null' : `(julianday(${updatedAt}) - 2440587.5) * 86400000`;
  return { now: 'current_timestamp', since, isOver };
}
