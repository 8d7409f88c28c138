import { pause, systemClock, packMetadata } from '../../../core/index.js';
import { refusalOf } from '../dialect/refusal.js';
import { NOW } from './clock.js';
import { partsOf } from '../tables/table-name.js';
import { type ExistingTableDialect, quotedNames } from '../dialect/existing-table-dialect.js';

const TICK_MS = 1;
/** Ticks of the clock to wait for, before it is taken for one that was set back. */
const TICKS = 3;

const quote = (name: string): string => `"${name}"`;

export const sqliteExistingTable: ExistingTableDialect = {
  quote,

  describe(query, table) {
    const { name } = partsOf(table);
    return query(
      `select name, lower(type) as type, "notnull" and dflt_value is null and not (pk = 1 and lower(type) = 'integer') as required,
         exists (select 1 from pragma_index_list(?) as list where list."unique" and not list.partial
           and (select group_concat(info.name) from pragma_index_info(list.name) as info) = columns.name) as "unique"
       from pragma_table_info(?) as columns`,
      [name, name],
    );
  },

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
    const its = quotedNames(table, quote);
    const { rows, touch } = its;
    const abandoned = (row: string): string =>
      Number.isFinite(table.abandonedAfterMs) && its.updatedAt !== undefined
        ? `julianday(${row}.${its.updatedAt}) < julianday('now') - ${table.abandonedAfterMs} / 86400000.0`
        : '0';
    const over = (row: string): string => `coalesce(${row}.${its.expiresAt} <= ${NOW}, ${abandoned(row)}, 0)`;
    return {
      async tryAcquire(query, _table, { key, owner, ttlMs, metadata }) {
        const granted = await query(
          `insert into ${rows} as held (${its.all})
           select ?, ?, ${NOW} * 1000, ${NOW} + ?, ? ${touch.map(() => ', current_timestamp').join('')}
           where not exists (select 1 from ${rows} as other where ${its.key} = ? and not (other.${its.owner} = ? or ${over('other')}))
           on conflict (${its.key}) do update set
             ${its.token} = case when held.${its.owner} = excluded.${its.owner} then held.${its.token} else max(coalesce(held.${its.token}, 0) + 1, excluded.${its.token}) end,
             ${[its.owner, its.expiresAt, its.metadata, ...touch].map((column) => `${column} = excluded.${column}`).join(', ')}
           where held.${its.owner} = excluded.${its.owner} or ${over('held')}
           returning cast(${its.token} as text) as token`,
          [key, owner, ttlMs, packMetadata(metadata), key, owner],
        );
        const token = granted[0]?.['token'];
        if (typeof token === 'string') return { acquired: true, fencingToken: BigInt(token) };
        const [row] = await query(
          `select ${its.metadata} as metadata, iif(${its.expiresAt} is null, ${its.owner}, null) as stranger, max(${its.expiresAt} - ${NOW}, 0) as remaining,
             ${its.updatedAt === undefined ? 'null' : `(julianday(${its.updatedAt}) - 2440587.5) * 86400000`} as since
           from ${rows} where ${its.key} = ?`,
          [key],
        );
        return refusalOf(row);
      },

      async renew(query, _table, { key, owner, ttlMs }) {
        const touched = touch.map((column) => `, ${column} = current_timestamp`).join('');
        const renewed = await query(
          `update ${rows} set ${its.expiresAt} = ${NOW} + ? ${touched} where ${its.key} = ? and ${its.owner} = ? and ${its.expiresAt} > ${NOW} returning 1`,
          [ttlMs, key, owner],
        );
        return renewed.length === 1;
      },

      async isHeldBy(query, _table, { key, owner }) {
        const held = await query(
          `select 1 from ${rows} where ${its.key} = ? and ${its.owner} = ? and ${its.expiresAt} > ${NOW}`,
          [key, owner],
        );
        return held.length === 1;
      },

      /** The clock counts milliseconds: within the same one, the next token could be this one again. */
      async release(query, _table, { key, owner }) {
        const ours = `where ${its.key} = ? and ${its.owner} = ?`;
        for (let tick = 0; tick < TICKS; tick += 1) {
          const gone = await query(`delete from ${rows} ${ours} and ${its.token} < ${NOW} * 1000 returning 1`, [
            key,
            owner,
          ]);
          if (gone.length === 1) return true;
          const [row] = await query(`select 1 as held from ${rows} ${ours}`, [key, owner]);
          if (!row) return false;
          await pause(systemClock, TICK_MS);
        }
        const kept = await query(`update ${rows} set ${its.expiresAt} = ${NOW} ${ours} returning 1`, [key, owner]);
        return kept.length === 1;
      },

      async reap(query, _table, idleMs) {
        await query(`delete from ${rows} where ${its.expiresAt} < ${NOW} - ?`, [idleMs]);
      },
    };
  },
};
