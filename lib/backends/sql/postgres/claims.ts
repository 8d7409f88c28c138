import { type ClaimStatements, parseClaimReading } from '../dialect/claim-statements.js';
import { toStoredText } from '../tables/stored-key.js';
import { NOW_SQL, NOW_MICROSECONDS_SQL } from './clock.js';
import { selectOwnersInLineSql, postgresWaitingLine, notifyAllSql } from './waiting-line.js';

/** Returns statements on claims. The first `swap` moves the waiters from the column `waiting` into `metadata`. */
export function postgresClaims(table: string): ClaimStatements {
  return {
    maxPermits: 1_000,

    async read(query, key) {
      const [columns] = await query(
        `select ${NOW_MICROSECONDS_SQL}::text as now, owner, token::text as token, metadata, waiting, ${selectOwnersInLineSql('waiting')} as owners,
           extract(epoch from expires_at - ${NOW_SQL}) * 1000 as remaining
         from (select) as one left join ${table} on lock_key = $1`,
        [toStoredText(key)],
      );
      const { nowUs, row } = parseClaimReading(columns, 1n);
      const owners: readonly unknown[] = Array.isArray(columns?.['owners']) ? columns['owners'] : [];
      return { nowUs, row: row && { ...row, waiting: { raw: columns?.['waiting'], owners: owners.map(String) } } };
    },

    async swap(query, key, expectedRow, { owner, token, metadata, untilMs, ownersToNotify }) {
      const ownerHashes = ownersToNotify.map((waiter) => postgresWaitingLine.hashOwner(waiter));
      const newValues = [toStoredText(key), owner, String(token), untilMs, metadata, ownerHashes];
      const expiresAtSql = `to_timestamp($4::double precision / 1000)`;
      const writtenRows = expectedRow
        ? await query(
            `update ${table} set owner = $2, token = $3::bigint, expires_at = ${expiresAtSql}, metadata = $5, acquired_at = ${NOW_SQL}, waiting = '{}'
             where lock_key = $1 and owner is not distinct from $7 and token = $8::bigint
               and metadata is not distinct from $9 and waiting = $10::text[] returning ${notifyAllSql(table, '$6')}`,
            [
              ...newValues,
              expectedRow.owner,
              String(expectedRow.token),
              expectedRow.metadata,
              expectedRow.waiting?.raw,
            ],
          )
        : await query(
            `insert into ${table} (lock_key, owner, token, expires_at, metadata, acquired_at)
             values ($1, $2, $3::bigint, ${expiresAtSql}, $5, ${NOW_SQL}) on conflict (lock_key) do nothing returning ${notifyAllSql(table, '$6')}`,
            newValues,
          );
      return writtenRows.length === 1;
    },
  };
}
