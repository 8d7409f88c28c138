import { type ClaimStatements, parseClaimReading } from '../dialect/claim-statements.js';
import { NOW_MILLISECONDS_SQL } from './clock.js';

export function sqliteClaims(table: string): ClaimStatements {
  return {
    maxPermits: 1_000,

    async read(query, key) {
      const [columns] = await query(
        `select cast(${NOW_MILLISECONDS_SQL} as text) as now, owner, cast(token as text) as token, metadata, expires_at - ${NOW_MILLISECONDS_SQL} as remaining
         from (select 1) left join ${table} on lock_key = ?`,
        [key],
      );
      return parseClaimReading(columns, 1_000n);
    },

    async swap(query, key, expectedRow, { owner, token, metadata, untilMs }) {
      const newValues = [owner, String(token), untilMs, metadata];
      const writtenRows = expectedRow
        ? await query(
            `update ${table} set owner = ?, token = cast(? as integer), expires_at = ?, metadata = ?, acquired_at = ${NOW_MILLISECONDS_SQL}
             where lock_key = ? and owner is ? and token = cast(? as integer) and metadata is ? returning 1`,
            [...newValues, key, expectedRow.owner, String(expectedRow.token), expectedRow.metadata],
          )
        : await query(
            `insert into ${table} (owner, token, expires_at, metadata, lock_key, acquired_at)
             values (?, cast(? as integer), ?, ?, ?, ${NOW_MILLISECONDS_SQL}) on conflict (lock_key) do nothing returning 1`,
            [...newValues, key],
          );
      return writtenRows.length === 1;
    },
  };
}
