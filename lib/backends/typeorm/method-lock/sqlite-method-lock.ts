import { systemClock } from '../../../core/index.js';
import { pause } from '../../../core/timers.js';
import { refusalOf } from '../refusal-of.js';
import type { MethodLockDialect } from './method-lock-dialect.js';
import { quotedNames } from './method-lock-table.js';

const NOW = `cast((julianday('now') - 2440587.5) * 86400000 as integer)`;
const TICK_MS = 1;
/** Ticks of the clock to wait for, before it is taken for one that was set back. */
const TICKS = 3;

const quote = (name: string): string => `"${name}"`;

export const sqliteMethodLock: MethodLockDialect = {
  quote,

  describe: (query, table) =>
    query(
      `select name, lower(type) as type, "notnull" and dflt_value is null and not (pk = 1 and lower(type) = 'integer') as required,
         exists (select 1 from pragma_index_list(?) as list where list."unique" and not list.partial
           and (select group_concat(info.name) from pragma_index_info(list.name) as info) = columns.name) as "unique"
       from pragma_table_info(?) as columns`,
      [table, table],
    ),

  types: {
    key: /char|text|clob/u,
    owner: /char|text|clob/u,
    updatedAt: /date|time|text/u,
    expiresAt: /int/u,
    token: /int/u,
    metadata: /text/u,
  },

  added: { expiresAt: 'integer', token: 'integer', metadata: 'text' },

  writes: () => /^[^]*$/u,

  statements(table) {
    const {
      key: k,
      owner: o,
      token: n,
      expiresAt: e,
      metadata: m,
      updatedAt: u,
      touch,
      rows,
    } = quotedNames(table, quote);
    const abandoned = (row: string): string =>
      Number.isFinite(table.abandonedAfterMs) && u !== undefined
        ? `julianday(${row}.${u}) < julianday('now') - ${table.abandonedAfterMs} / 86400000.0`
        : '0';
    const over = (row: string): string => `coalesce(${row}.${e} <= ${NOW}, ${abandoned(row)}, 0)`;
    return {
      async tryAcquire(query, _table, { key, owner, ttlMs, metadata }) {
        const granted = await query(
          `insert into ${rows} as held (${[k, o, n, e, m, ...touch].join(', ')})
           select ?, ?, ${NOW} * 1000, ${NOW} + ?, ? ${touch.map(() => ', current_timestamp').join('')}
           where not exists (select 1 from ${rows} as other where ${k} = ? and not (other.${o} = ? or ${over('other')}))
           on conflict (${k}) do update set
             ${n} = case when held.${o} = excluded.${o} then held.${n} else max(coalesce(held.${n}, 0) + 1, excluded.${n}) end,
             ${[o, e, m, ...touch].map((column) => `${column} = excluded.${column}`).join(', ')}
           where held.${o} = excluded.${o} or ${over('held')}
           returning cast(${n} as text) as token`,
          [key, owner, ttlMs, JSON.stringify(metadata), key, owner],
        );
        const token = granted[0]?.['token'];
        if (typeof token === 'string') return { acquired: true, fencingToken: BigInt(token) };
        const [row] = await query(
          `select ${m} as metadata, iif(${e} is null, ${o}, null) as stranger, max(${e} - ${NOW}, 0) as remaining,
             ${u === undefined ? 'null' : `(julianday(${u}) - 2440587.5) * 86400000`} as since
           from ${rows} where ${k} = ?`,
          [key],
        );
        return refusalOf(row);
      },

      async renew(query, _table, { key, owner, ttlMs }) {
        const touched = touch.map((column) => `, ${column} = current_timestamp`).join('');
        const renewed = await query(
          `update ${rows} set ${e} = ${NOW} + ? ${touched} where ${k} = ? and ${o} = ? and ${e} > ${NOW} returning 1`,
          [ttlMs, key, owner],
        );
        return renewed.length === 1;
      },

      /** The clock counts milliseconds: within the same one, the next token could be this one again. */
      async release(query, _table, { key, owner }) {
        const ours = `where ${k} = ? and ${o} = ?`;
        for (let tick = 0; tick < TICKS; tick += 1) {
          const gone = await query(`delete from ${rows} ${ours} and ${n} < ${NOW} * 1000 returning 1`, [key, owner]);
          if (gone.length === 1) return true;
          const [row] = await query(`select 1 as held from ${rows} ${ours}`, [key, owner]);
          if (!row) return false;
          await pause(systemClock, TICK_MS);
        }
        const kept = await query(`update ${rows} set ${e} = ${NOW} ${ours} returning 1`, [key, owner]);
        return kept.length === 1;
      },

      async reap(query, _table, idleMs) {
        await query(`delete from ${rows} where ${e} < ${NOW} - ?`, [idleMs]);
      },
    };
  },
};
