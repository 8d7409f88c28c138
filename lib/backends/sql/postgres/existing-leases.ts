import { packMetadata } from '../../../core/index.js';
import { DatabaseError } from '../connections/database-error.js';
import type { Query } from '../connections/query.js';
import { type LeaseColumns, type LeaseStatements, listColumnNames } from '../dialect/lease-statements.js';
import { KEYS_PER_PAGE, readKeyPages } from '../dialect/key-pages.js';
import { parseRefusal, parseState } from '../dialect/refusal.js';
import { millisecondsFromNowSql, NOW_SQL, NOW_MICROSECONDS_SQL } from './clock.js';

/**
 * Maximum age of a token when its row is written. If the statement has waited for longer, another holder may meanwhile
 * have acquired and released the key with a greater token.
 */
const MAX_TOKEN_AGE_MICROSECONDS = 100;

/** Returns statements on a table that older programs use, too: see `existingTable` of `LeaseColumns`. */
export function createStatementsOnExistingTable(
  columns: LeaseColumns,
  abandonedAfterMs: number,
): Pick<LeaseStatements, 'tryAcquire' | 'release' | 'look' | 'keys'> {
  const { table, updatedAt, ...columnNames } = columns;
  const updatedAtColumns = updatedAt === undefined ? [] : [updatedAt];
  const heldSinceSql = updatedAt === undefined ? 'null' : `(extract(epoch from ${updatedAt}) * 1000)::text`;
  const isAbandonedSql = (row: string): string =>
    Number.isFinite(abandonedAfterMs) && updatedAt !== undefined
      ? `coalesce(${row}.${updatedAt} < ${NOW_SQL} - interval '${abandonedAfterMs} milliseconds', false)`
      : 'false';
  const hasEndedSql = (row: string): string =>
    `coalesce(${row}.${columnNames.expiresAt} <= ${NOW_SQL}, ${isAbandonedSql(row)})`;
  const isFreeOrOwnSql = (row: string): string => `(${row}.${columnNames.owner} = $2 or ${hasEndedSql(row)})`;
  const raiseToken = async (query: Query, key: string, owner: string): Promise<string> => {
    const [row] = await query(
      `update ${table} set ${columnNames.token} = greatest(${columnNames.token} + 1, ${NOW_MICROSECONDS_SQL}) where ${columnNames.key} = $1 and ${columnNames.owner} = $2
       returning ${columnNames.token}::text as token`,
      [key, owner],
    );
    if (typeof row?.['token'] !== 'string') throw new DatabaseError('the row of the key vanished', undefined);
    return row['token'];
  };
  return {
    async tryAcquire(query, { key, owner, ttlMs, metadata }) {
      // Inserts nothing for a held key, because even a conflicting insert uses up a number of the table's sequence.
      const [row] = await query(
        `with granted as (
           insert into ${table} as held (${listColumnNames(columns)})
           select $1::text, $2::text, ${NOW_MICROSECONDS_SQL}, ${millisecondsFromNowSql('$3')}, $4::text ${updatedAtColumns.map(() => `, ${NOW_SQL}`).join('')}
           where not exists (select from ${table} as other where ${columnNames.key} = $1 and not ${isFreeOrOwnSql('other')})
           on conflict (${columnNames.key}) do update set
             ${columnNames.token} = case when held.${columnNames.owner} = excluded.${columnNames.owner} and held.${columnNames.expiresAt} > ${NOW_SQL} then held.${columnNames.token} else greatest(coalesce(held.${columnNames.token}, 0) + 1, excluded.${columnNames.token}) end,
             ${[columnNames.owner, columnNames.expiresAt, columnNames.metadata, ...updatedAtColumns].map((column) => `${column} = excluded.${column}`).join(', ')}
           where ${isFreeOrOwnSql('held')}
           returning ${columnNames.token}, ${NOW_MICROSECONDS_SQL} - ${columnNames.token} as late
         )
         select ${columnNames.token}::text as token, late, null as metadata, null as since, null as remaining, null as legacy_owner from granted
         union all
         select null, null, ${columnNames.metadata}, ${heldSinceSql},
           greatest(extract(epoch from ${columnNames.expiresAt} - ${NOW_SQL}) * 1000, 0)::text, case when ${columnNames.expiresAt} is null then ${columnNames.owner} end
         from ${table} where ${columnNames.key} = $1 and not exists (select from granted)`,
        [key, owner, ttlMs, packMetadata(metadata)],
      );
      const token = row?.['token'];
      if (typeof token !== 'string') return parseRefusal(row);
      const fencingToken =
        Number(row?.['late']) > MAX_TOKEN_AGE_MICROSECONDS ? await raiseToken(query, key, owner) : token;
      return { acquired: true, fencingToken: BigInt(fencingToken) };
    },

    async look(query, key) {
      const [row] = await query(
        `select ${columnNames.owner} as owner, ${columnNames.token}::text as token, ${columnNames.metadata} as metadata, ${heldSinceSql} as since,
           greatest(extract(epoch from ${columnNames.expiresAt} - ${NOW_SQL}) * 1000, 0)::text as remaining,
           case when ${columnNames.expiresAt} is null then ${columnNames.owner} end as legacy_owner
         from ${table} as held where ${columnNames.key} = $1 and not ${hasEndedSql('held')}`,
        [key],
      );
      return parseState(row);
    },

    keys(query, prefix) {
      const selectPageSql = (comparison: string): string => `select ${columnNames.key} as name from ${table} as held
        where ${columnNames.key} ${comparison} $1 and starts_with(${columnNames.key} collate "C", $2) and not ${hasEndedSql('held')}
        order by ${columnNames.key} limit ${KEYS_PER_PAGE}`;
      return readKeyPages(
        prefix,
        (comparison, name) => query(selectPageSql(comparison), [name, prefix]),
        (name) => name,
      );
    },

    /** Deletes the row only if the clock has passed its token: the next token is a time, and must be greater. */
    async release(query, { key, owner }) {
      const freedRows = await query(
        `with clock as materialized (select ${NOW_MICROSECONDS_SQL} as us),
           gone as (delete from ${table} using clock where ${columnNames.key} = $1 and ${columnNames.owner} = $2 and ${columnNames.token} < us returning 1),
           kept as (update ${table} set ${columnNames.expiresAt} = ${NOW_SQL} from clock where ${columnNames.key} = $1 and ${columnNames.owner} = $2 and ${columnNames.token} >= us returning 1)
         select 1 from gone union all select 1 from kept`,
        [key, owner],
      );
      return freedRows.length === 1;
    },
  };
}
