import { refusalOf } from '../refusal-of.js';
import type { MethodLockDialect } from './method-lock-dialect.js';
import { quotedNames } from './method-lock-table.js';

const NOW = 'clock_timestamp()';
const NOW_US = `floor(extract(epoch from ${NOW}) * 1000000)::bigint`;
const IN_MS = (parameter: string): string => `${NOW} + ${parameter}::double precision * interval '1 millisecond'`;

const quote = (name: string): string => `"${name}"`;

export const postgresMethodLock: MethodLockDialect = {
  quote,

  describe: (query, table) =>
    query(
      `select attname as name, format_type(atttypid, atttypmod) as type,
         attnotnull and not atthasdef and attidentity = '' as required,
         exists (select from pg_index where indrelid = attrelid and indisunique and indpred is null and indexprs is null
           and indnkeyatts = 1 and indkey[0] = attnum and indimmediate) as unique
       from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
      [quote(table)],
    ),

  types: {
    key: /^(text|character varying.*)$/u,
    owner: /^(text|character varying.*)$/u,
    updatedAt: /^(timestamp.*|date)$/u,
    expiresAt: /^timestamp with time zone$/u,
    token: /^bigint$/u,
    metadata: /^text$/u,
  },

  added: { expiresAt: 'timestamptz', token: 'bigint', metadata: 'text' },

  writes: () => /^[^\0]*$/u,

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
        ? `coalesce(${row}.${u} < ${NOW} - interval '${table.abandonedAfterMs} milliseconds', false)`
        : 'false';
    const over = (row: string): string => `(${row}.${o} = $2 or coalesce(${row}.${e} <= ${NOW}, ${abandoned(row)}))`;
    return {
      async tryAcquire(query, _table, { key, owner, ttlMs, metadata }) {
        // Not even tried where somebody has the key: each insert that conflicts uses up a number of the row's sequence.
        const [row] = await query(
          `with granted as (
             insert into ${rows} as held (${[k, o, n, e, m, ...touch].join(', ')})
             select $1::text, $2::text, ${NOW_US}, ${IN_MS('$3')}, $4::text ${touch.map(() => `, ${NOW}`).join('')}
             where not exists (select from ${rows} as other where ${k} = $1 and not ${over('other')})
             on conflict (${k}) do update set
               ${n} = case when held.${o} = excluded.${o} then held.${n} else greatest(coalesce(held.${n}, 0) + 1, excluded.${n}) end,
               ${[o, e, m, ...touch].map((column) => `${column} = excluded.${column}`).join(', ')}
             where ${over('held')}
             returning ${n}
           )
           select ${n}::text as token, null as metadata, null as since, null as remaining, null as stranger from granted
           union all
           select null, ${m}, ${u === undefined ? 'null' : `(extract(epoch from ${u}) * 1000)::text`},
             greatest(extract(epoch from ${e} - ${NOW}) * 1000, 0)::text, case when ${e} is null then ${o} end
           from ${rows} where ${k} = $1 and not exists (select from granted)`,
          [key, owner, ttlMs, JSON.stringify(metadata)],
        );
        const token = row?.['token'];
        return typeof token === 'string' ? { acquired: true, fencingToken: BigInt(token) } : refusalOf(row);
      },

      async renew(query, _table, { key, owner, ttlMs }) {
        const touched = touch.map((column) => `, ${column} = ${NOW}`).join('');
        const renewed = await query(
          `update ${rows} set ${e} = ${IN_MS('$3')} ${touched}
           where ${k} = $1 and ${o} = $2 and ${e} > ${NOW} returning 1`,
          [key, owner, ttlMs],
        );
        return renewed.length === 1;
      },

      async release(query, _table, { key, owner }) {
        const freed = await query(
          `with clock as materialized (select ${NOW_US} as us),
             gone as (delete from ${rows} using clock where ${k} = $1 and ${o} = $2 and ${n} < us returning 1),
             kept as (update ${rows} set ${e} = ${NOW} from clock where ${k} = $1 and ${o} = $2 and ${n} >= us returning 1)
           select 1 from gone union all select 1 from kept`,
          [key, owner],
        );
        return freed.length === 1;
      },

      async reap(query, _table, idleMs) {
        const idle = `${e} < ${IN_MS('-$1')}`;
        await query(
          `delete from ${rows} where ${k} in (select ${k} from ${rows} where ${idle} limit 1000) and ${idle}`,
          [idleMs],
        );
      },
    };
  },
};
