import { type ClaimStatements, readingOf } from '../dialect/claim-statements.js';
import { storedText } from '../tables/stored-key.js';
import { NOW, NOW_US } from './clock.js';
import { ownersInLine, postgresLine, tellAll } from './waiting-line.js';

/** In a table of the migration's. Whoever waits in the row moves to the line with the first swap. */
export function postgresClaims(table: string): ClaimStatements {
  return {
    maxPermits: 1_000,

    async read(query, key) {
      const [found] = await query(
        `select ${NOW_US}::text as now, owner, token::text as token, metadata, waiting, ${ownersInLine('waiting')} as owners,
           extract(epoch from expires_at - ${NOW}) * 1000 as remaining
         from (select) as one left join ${table} on lock_key = $1`,
        [storedText(key)],
      );
      const { nowUs, row } = readingOf(found, 1n);
      const owners: readonly unknown[] = Array.isArray(found?.['owners']) ? found['owners'] : [];
      return { nowUs, row: row && { ...row, waiting: { raw: found?.['waiting'], owners: owners.map(String) } } };
    },

    async swap(query, key, seen, { owner, token, metadata, untilMs, ready }) {
      const names = ready.map((waiter) => postgresLine.nameOf(waiter));
      const next = [storedText(key), owner, String(token), untilMs, metadata, names];
      const end = `to_timestamp($4::double precision / 1000)`;
      const written = seen
        ? await query(
            `update ${table} set owner = $2, token = $3::bigint, expires_at = ${end}, metadata = $5, acquired_at = ${NOW}, waiting = '{}'
             where lock_key = $1 and owner is not distinct from $7 and token = $8::bigint
               and metadata is not distinct from $9 and waiting = $10::text[] returning ${tellAll(table, '$6')}`,
            [...next, seen.owner, String(seen.token), seen.metadata, seen.waiting?.raw],
          )
        : await query(
            `insert into ${table} (lock_key, owner, token, expires_at, metadata, acquired_at)
             values ($1, $2, $3::bigint, ${end}, $5, ${NOW}) on conflict (lock_key) do nothing returning ${tellAll(table, '$6')}`,
            next,
          );
      return written.length === 1;
    },
  };
}
