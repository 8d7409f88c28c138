import { packMetadata } from '../../../core/index.js';
import { DatabaseError } from '../connections/database-error.js';
import type { Query } from '../connections/query.js';
import { type LeaseColumns, type LeaseStatements, namesOf } from '../dialect/lease-statements.js';
import { KEYS_A_PAGE, keyPages } from '../dialect/key-pages.js';
import { readRefusal, readState } from '../dialect/refusal.js';
import { inMs, NOW, NOW_US } from './clock.js';

/** A row this much later than its token has waited: meanwhile a holder may have come and gone, with a greater one. */
const LATE_US = 100;

/** In a table that was there before. */
export function existingLeases(
  columns: LeaseColumns,
  abandonedAfterMs: number,
): Pick<LeaseStatements, 'tryAcquire' | 'release' | 'look' | 'keys'> {
  const { rows, updatedAt, ...its } = columns;
  const written = updatedAt === undefined ? [] : [updatedAt];
  const since = updatedAt === undefined ? 'null' : `(extract(epoch from ${updatedAt}) * 1000)::text`;
  const isAbandoned = (row: string): string =>
    Number.isFinite(abandonedAfterMs) && updatedAt !== undefined
      ? `coalesce(${row}.${updatedAt} < ${NOW} - interval '${abandonedAfterMs} milliseconds', false)`
      : 'false';
  const ended = (row: string): string => `coalesce(${row}.${its.expiresAt} <= ${NOW}, ${isAbandoned(row)})`;
  const over = (row: string): string => `(${row}.${its.owner} = $2 or ${ended(row)})`;
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
    async tryAcquire(query, { key, owner, ttlMs, metadata }) {
      // Not even tried where somebody has the key: each insert that conflicts uses up a number of the row's sequence.
      const [row] = await query(
        `with granted as (
           insert into ${rows} as held (${namesOf(columns)})
           select $1::text, $2::text, ${NOW_US}, ${inMs('$3')}, $4::text ${written.map(() => `, ${NOW}`).join('')}
           where not exists (select from ${rows} as other where ${its.key} = $1 and not ${over('other')})
           on conflict (${its.key}) do update set
             ${its.token} = case when held.${its.owner} = excluded.${its.owner} and held.${its.expiresAt} > ${NOW} then held.${its.token} else greatest(coalesce(held.${its.token}, 0) + 1, excluded.${its.token}) end,
             ${[its.owner, its.expiresAt, its.metadata, ...written].map((column) => `${column} = excluded.${column}`).join(', ')}
           where ${over('held')}
           returning ${its.token}, ${NOW_US} - ${its.token} as late
         )
         select ${its.token}::text as token, late, null as metadata, null as since, null as remaining, null as stranger from granted
         union all
         select null, null, ${its.metadata}, ${since},
           greatest(extract(epoch from ${its.expiresAt} - ${NOW}) * 1000, 0)::text, case when ${its.expiresAt} is null then ${its.owner} end
         from ${rows} where ${its.key} = $1 and not exists (select from granted)`,
        [key, owner, ttlMs, packMetadata(metadata)],
      );
      const token = row?.['token'];
      if (typeof token !== 'string') return readRefusal(row);
      const fencingToken = Number(row?.['late']) > LATE_US ? await raise(query, key, owner) : token;
      return { acquired: true, fencingToken: BigInt(fencingToken) };
    },

    async look(query, key) {
      const [row] = await query(
        `select ${its.owner} as owner, ${its.token}::text as token, ${its.metadata} as metadata, ${since} as since,
           greatest(extract(epoch from ${its.expiresAt} - ${NOW}) * 1000, 0)::text as remaining,
           case when ${its.expiresAt} is null then ${its.owner} end as stranger
         from ${rows} as held where ${its.key} = $1 and not ${ended('held')}`,
        [key],
      );
      return readState(row);
    },

    keys(query, prefix) {
      const page = (comparison: string): string => `select ${its.key} as name from ${rows} as held
        where ${its.key} ${comparison} $1 and starts_with(${its.key} collate "C", $2) and not ${ended('held')}
        order by ${its.key} limit ${KEYS_A_PAGE}`;
      return keyPages(
        prefix,
        (comparison, name) => query(page(comparison), [name, prefix]),
        (name) => name,
      );
    },

    async release(query, { key, owner }) {
      const freed = await query(
        `with clock as materialized (select ${NOW_US} as us),
           gone as (delete from ${rows} using clock where ${its.key} = $1 and ${its.owner} = $2 and ${its.token} < us returning 1),
           kept as (update ${rows} set ${its.expiresAt} = ${NOW} from clock where ${its.key} = $1 and ${its.owner} = $2 and ${its.token} >= us returning 1)
         select 1 from gone union all select 1 from kept`,
        [key, owner],
      );
      return freed.length === 1;
    },
  };
}
