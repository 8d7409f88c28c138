import { type ClaimStatements, parseClaimReading } from '../dialect/claim-statements.js';
import { toStoredBytes } from '../tables/stored-key.js';
import { NOW_SQL, NOW_MICROSECONDS_SQL } from './clock.js';
import { decodeTexts, hasChangedRow, textBytesSql, toBytes } from './driver.js';

const toBytesOrNull = (text: string | null): Buffer | null => (text === null ? null : toBytes(text));

/** Returns statements on claims, for any isolation level: each statement is a transaction on one row. */
export function mysqlClaims(table: string): ClaimStatements {
  return {
    // All claims of a key must fit into the column `metadata`, whose type `text` keeps 64 KB.
    maxPermits: 150,

    async read(query, key) {
      const rows = await query(
        `select cast(${NOW_MICROSECONDS_SQL} as char) as now, ${textBytesSql('held.owner')} as owner, cast(held.token as char) as token,
           ${textBytesSql('held.metadata')} as metadata, timestampdiff(microsecond, ${NOW_SQL}, held.expires_at) / 1000 as remaining
         from (select 1) as one left join ${table} as held on held.lock_key = ?`,
        [toStoredBytes(key)],
      );
      return parseClaimReading(decodeTexts(rows)[0], 1n);
    },

    async swap(query, key, expectedRow, { owner, token, metadata, untilMs }) {
      const newValues = [toBytesOrNull(owner), String(token), untilMs * 1_000, toBytesOrNull(metadata)];
      const expiresAtSql = `timestamp('1970-01-01') + interval ? microsecond`;
      const answer = expectedRow
        ? await query(
            `update ${table} set owner = ?, token = cast(? as unsigned), expires_at = ${expiresAtSql}, metadata = ?, acquired_at = ${NOW_SQL}
             where lock_key = ? and owner <=> ? and token = cast(? as unsigned) and metadata <=> ?`,
            [
              ...newValues,
              toStoredBytes(key),
              toBytesOrNull(expectedRow.owner),
              String(expectedRow.token),
              toBytesOrNull(expectedRow.metadata),
            ],
          )
        : await query(
            `insert ignore into ${table} (owner, token, expires_at, metadata, lock_key, acquired_at)
             values (?, cast(? as unsigned), ${expiresAtSql}, ?, ?, ${NOW_SQL})`,
            [...newValues, toStoredBytes(key)],
          );
      return hasChangedRow(answer);
    },
  };
}
