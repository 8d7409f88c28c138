import { packMetadata } from '../../../core/index.js';
import { inMs, NOW, NOW_US } from './clock.js';
import { DatabaseError } from '../connections/database-error.js';
import type { Query } from '../dialect/sql-dialect.js';
import { refusalOf } from '../dialect/refusal.js';
import { type ExistingTableDialect, quotedNames } from '../dialect/existing-table-dialect.js';

/** A row this much later than its token has waited: meanwhile a holder may have come and gone, with a greater one. */
const LATE_US = 100;

const quote = (name: string): string => `"${name}"`;

export const postgresExistingTable: ExistingTableDialect = {
  quote,

  describe: (query, table) =>
    query(
      `select attname as name, format_type(atttypid, atttypmod) as type,
         attnotnull and not atthasdef and attidentity = '' as required,
         exists (select from pg_index where indrelid = attrelid and indisunique and indpred is null and indexprs is null
           and indnkeyatts = 1 and indkey[0] = attnum and indimmediate) as unique
       from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
      [table],
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
    const its = quotedNames(table, quote);
    const { rows, touch } = its;
    const abandoned = (row: string): string =>
      Number.isFinite(table.abandonedAfterMs) && its.updatedAt !== undefined
        ? `coalesce(${row}.${its.updatedAt} < ${NOW} - interval '${table.abandonedAfterMs} milliseconds', false)`
        : 'false';
    const over = (row: string): string =>
      `(${row}.${its.owner} = $2 or coalesce(${row}.${its.expiresAt} <= ${NOW}, ${abandoned(row)}))`;
    const raise = async (query: Query, key: string, owner: string): Promise<string> => {
      const [row] = await query(
        `update ${rows} set ${its.token} = greatest(${its.token} + 1, ${NOW_US}) where ${its.key} = $1 and ${its.owner} = $2
         returning ${its.token}::text as token`,
        [key, owner],
      );
      if (typeof row?.['token'] !== 'string') throw new DatabaseError('the row of the key vanished', undefined);
      return row['token'];
    };
    return {
      async tryAcquire(query, _table, { key, owner, ttlMs, metadata }) {
        // Not even tried where somebody has the key: each insert that conflicts uses up a number of the row's sequence.
        const [row] = await query(
          `with granted as (
             insert into ${rows} as held (${its.all})
             select $1::text, $2::text, ${NOW_US}, ${inMs('$3')}, $4::text ${touch.map(() => `, ${NOW}`).join('')}
             where not exists (select from ${rows} as other where ${its.key} = $1 and not ${over('other')})
             on conflict (${its.key}) do update set
               ${its.token} = case when held.${its.owner} = excluded.${its.owner} then held.${its.token} else greatest(coalesce(held.${its.token}, 0) + 1, excluded.${its.token}) end,
               ${[its.owner, its.expiresAt, its.metadata, ...touch].map((column) => `${column} = excluded.${column}`).join(', ')}
             where ${over('held')}
             returning ${its.token}, ${NOW_US} - ${its.token} as late
           )
           select ${its.token}::text as token, late, null as metadata, null as since, null as remaining, null as stranger from granted
           union all
           select null, null, ${its.metadata}, ${its.updatedAt === undefined ? 'null' : `(extract(epoch from ${its.updatedAt}) * 1000)::text`},
             greatest(extract(epoch from ${its.expiresAt} - ${NOW}) * 1000, 0)::text, case when ${its.expiresAt} is null then ${its.owner} end
           from ${rows} where ${its.key} = $1 and not exists (select from granted)`,
          [key, owner, ttlMs, packMetadata(metadata)],
        );
        const token = row?.['token'];
        if (typeof token !== 'string') return refusalOf(row);
        const fencingToken = Number(row?.['late']) > LATE_US ? await raise(query, key, owner) : token;
        return { acquired: true, fencingToken: BigInt(fencingToken) };
      },

      async renew(query, _table, { key, owner, ttlMs }) {
        const touched = touch.map((column) => `, ${column} = ${NOW}`).join('');
        const renewed = await query(
          `update ${rows} set ${its.expiresAt} = ${inMs('$3')} ${touched}
           where ${its.key} = $1 and ${its.owner} = $2 and ${its.expiresAt} > ${NOW} returning 1`,
          [key, owner, ttlMs],
        );
        return renewed.length === 1;
      },

      async release(query, _table, { key, owner }) {
        const freed = await query(
          `with clock as materialized (select ${NOW_US} as us),
             gone as (delete from ${rows} using clock where ${its.key} = $1 and ${its.owner} = $2 and ${its.token} < us returning 1),
             kept as (update ${rows} set ${its.expiresAt} = ${NOW} from clock where ${its.key} = $1 and ${its.owner} = $2 and ${its.token} >= us returning 1)
           select 1 from gone union all select 1 from kept`,
          [key, owner],
        );
        return freed.length === 1;
      },

      async isHeldBy(query, _table, { key, owner }) {
        const held = await query(
          `select from ${rows} where ${its.key} = $1 and ${its.owner} = $2 and ${its.expiresAt} > ${NOW}`,
          [key, owner],
        );
        return held.length === 1;
      },

      async reap(query, _table, idleMs) {
        const idle = `${its.expiresAt} < ${inMs('-$1')}`;
        await query(
          `delete from ${rows} where ${its.key} in (select ${its.key} from ${rows} where ${idle} limit 1000) and ${idle}`,
          [idleMs],
        );
      },
    };
  },
};
