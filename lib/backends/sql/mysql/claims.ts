import { type ClaimStatements, readingOf } from '../dialect/claim-statements.js';
import { storedBytes } from '../tables/stored-key.js';
import { NOW, NOW_US } from './clock.js';
import { bytesOf, changed } from './driver.js';

const bytesOrNull = (text: string | null): Buffer | null => (text === null ? null : bytesOf(text));

/** Each statement is a transaction on one row by its primary key: every isolation level does. */
export function mysqlClaims(table: string): ClaimStatements {
  return {
    // A text has 64 KB.
    maxPermits: 150,

    async read(query, key) {
      const [found] = await query(
        `select cast(${NOW_US} as char) as now, cast(held.owner as char) as owner, cast(held.token as char) as token,
           cast(held.metadata as char) as metadata, timestampdiff(microsecond, ${NOW}, held.expires_at) / 1000 as remaining
         from (select 1) as one left join ${table} as held on held.lock_key = ?`,
        [storedBytes(key)],
      );
      return readingOf(found, 1n);
    },

    async swap(query, key, seen, { owner, token, metadata, untilMs }) {
      const next = [bytesOrNull(owner), String(token), untilMs * 1_000, bytesOrNull(metadata)];
      const end = `timestamp('1970-01-01') + interval ? microsecond`;
      const answer = seen
        ? await query(
            `update ${table} set owner = ?, token = cast(? as unsigned), expires_at = ${end}, metadata = ?, acquired_at = ${NOW}
             where lock_key = ? and owner <=> ? and token = cast(? as unsigned) and metadata <=> ?`,
            [...next, storedBytes(key), bytesOrNull(seen.owner), String(seen.token), bytesOrNull(seen.metadata)],
          )
        : await query(
            `insert ignore into ${table} (owner, token, expires_at, metadata, lock_key, acquired_at)
             values (?, cast(? as unsigned), ${end}, ?, ?, ${NOW})`,
            [...next, storedBytes(key)],
          );
      return changed(answer);
    },
  };
}
