import { packMetadata } from '../../../core/index.js';
import { DatabaseError } from '../connections/database-error.js';
import type { Query } from '../connections/query.js';
import {
  type LeaseColumns,
  type LeaseRow,
  type LeaseStatements,
  namesOf,
  REAPED_AT_ONCE,
} from '../dialect/lease-statements.js';
import { KEYS_A_PAGE, keyPages } from '../dialect/key-pages.js';
import { readRefusal, readState } from '../dialect/refusal.js';
import { keyInStored, storedBytes } from '../tables/stored-key.js';
import { IN_US, NOW, NOW_US, usSince1970 } from './clock.js';
import { bytesOf, changed, insertedId } from './driver.js';

/** How often a step starts again because the row came or went meanwhile. */
const ROUNDS = 5;

/** Each statement is a transaction on one row by its primary key: every isolation level does. */
export function mysqlLeases(columns: LeaseColumns): LeaseStatements {
  const { rows, updatedAt, existing, ...its } = columns;
  const { text, keyOf, now, since, over } = existing
    ? ofOlderPrograms(columns, existing.abandonedAfterMs)
    : ofOurs(columns);
  const written = updatedAt === undefined ? '' : `, ${updatedAt} = ${now}`;
  const ours = `${its.key} = ${text} and ${its.owner} = ${text}`;

  /** Assignments run from left to right: only that of the token needs the old owner. */
  const take = async (query: Query, { key, owner, ttlMs, metadata }: LeaseRow) => {
    const us = bytesOf(owner);
    const answer = await query(
      `update ${rows} set
         ${its.token} = last_insert_id(if(${its.owner} = ${text} and ${its.expiresAt} > ${NOW}, ${its.token}, greatest(coalesce(${its.token}, 0) + 1, ${NOW_US}))),
         ${its.owner} = ${text}, ${its.expiresAt} = ${IN_US}, ${its.metadata} = ${text} ${written}
       where ${its.key} = ${text} and (${its.owner} = ${text} or ${over})`,
      [us, us, ttlMs * 1000, bytesOf(packMetadata(metadata)), keyOf(key), us],
    );
    return insertedId(answer);
  };

  /** In an existing table the driver may tell a row's id for its token, which is read then. */
  const create = async (query: Query, { key, owner, ttlMs, metadata }: LeaseRow) => {
    const answer = await query(
      `insert ignore into ${rows} (${namesOf(columns)})
       values (${text}, ${text}, last_insert_id(${NOW_US}), ${IN_US}, ${text} ${updatedAt === undefined ? '' : `, ${now}`})`,
      [keyOf(key), bytesOf(owner), ttlMs * 1000, bytesOf(packMetadata(metadata))],
    );
    if (!existing) return insertedId(answer);
    const token = `select cast(${its.token} as char) as token from ${rows} where ${ours}`;
    const [row] = await query(token, [keyOf(key), bytesOf(owner)]);
    return typeof row?.['token'] === 'string' ? BigInt(row['token']) : undefined;
  };

  return {
    /** Looks first in an existing table: each insert that conflicts would use up a number of the row's counter. */
    async tryAcquire(query, lease) {
      let holder: Record<string, unknown> | undefined;
      for (let round = 0; round < ROUNDS; round += 1) {
        const taken = holder || !existing ? await take(query, lease) : undefined;
        if (taken !== undefined) return { acquired: true, fencingToken: taken };
        [holder] = await query(
          `select ${its.owner} = ${text} or ${over} as is_free, cast(${its.metadata} as char) as metadata, ${since} as since,
             if(${its.expiresAt} is null, cast(${its.owner} as char), null) as stranger,
             greatest(timestampdiff(microsecond, ${NOW}, ${its.expiresAt}) / 1000, 0) as remaining
           from ${rows} where ${its.key} = ${text}`,
          [bytesOf(lease.owner), keyOf(lease.key)],
        );
        if (holder && Number(holder['is_free']) === 0) return readRefusal(holder);
        const created = holder ? undefined : await create(query, lease);
        if (created !== undefined) return { acquired: true, fencingToken: created };
      }
      // `insert ignore` keeps to itself what it did not like.
      if (!holder) throw new DatabaseError('the server did not insert a row for the key', undefined);
      return readRefusal(holder);
    },

    async renew(query, { key, owner, ttlMs }) {
      const answer = await query(
        `update ${rows} set ${its.expiresAt} = ${IN_US} ${existing ? written : ''} where ${ours} and ${its.expiresAt} > ${NOW}`,
        [ttlMs * 1000, keyOf(key), bytesOf(owner)],
      );
      return changed(answer);
    },

    async release(query, { key, owner }) {
      const values = [keyOf(key), bytesOf(owner)];
      const gone = `delete from ${rows} where ${ours} and ${its.token} < ${NOW_US}`;
      if (existing && changed(await query(gone, values))) return true;
      const free = existing ? '' : `, ${its.owner} = null, ${its.metadata} = null`;
      return changed(await query(`update ${rows} set ${its.expiresAt} = ${NOW} ${free} where ${ours}`, values));
    },

    async isHeldBy(query, { key, owner }) {
      const held = `select 1 from ${rows} where ${ours} and ${its.expiresAt} > ${NOW}`;
      return (await query(held, [keyOf(key), bytesOf(owner)])).length === 1;
    },

    async look(query, key) {
      const [row] = await query(
        `select cast(${its.owner} as char) as owner, cast(${its.token} as char) as token,
           cast(${its.metadata} as char) as metadata, ${since} as since,
           if(${its.expiresAt} is null, cast(${its.owner} as char), null) as stranger,
           greatest(timestampdiff(microsecond, ${NOW}, ${its.expiresAt}) / 1000, 0) as remaining
         from ${rows} where ${its.key} = ${text} and not (${over})`,
        [keyOf(key)],
      );
      return readState(row);
    },

    keys(query, prefix) {
      const page = (comparison: string): string => `select ${its.key} as name from ${rows}
        where ${its.key} ${comparison} ${text} and left(${its.key}, char_length(${text})) = ${text} and not (${over})
        order by ${its.key} limit ${KEYS_A_PAGE}`;
      const beginning = bytesOf(prefix);
      const pageFrom = (comparison: string, name: string) =>
        query(page(comparison), [bytesOf(name), beginning, beginning]);
      return keyPages(prefix, pageFrom, existing ? (name) => name : keyInStored);
    },

    /** Looks without locking first: a `delete` by time alone would lock every row that it passes. */
    async reap(query, idleMs) {
      const idle = `${its.expiresAt} < ${NOW} - interval ? microsecond`;
      const found = await query(`select ${its.key} as k from ${rows} where ${idle} limit ${REAPED_AT_ONCE}`, [
        idleMs * 1000,
      ]);
      const keys = found.map(({ k: key }) => (typeof key === 'string' ? bytesOf(key) : key));
      if (keys.length === 0) return false;
      const among = `${its.key} in (${keys.map(() => text).join(', ')})`;
      await query(`delete from ${rows} where ${among} and ${idle}`, [...keys, idleMs * 1000]);
      return keys.length === REAPED_AT_ONCE;
    },
  };
}

/** How texts are written, `updatedAt` is written and read, and when another owner's row counts no more. */
function ofOurs({ owner, expiresAt, updatedAt = '' }: LeaseColumns) {
  const over = `${owner} is null or ${expiresAt} <= ${NOW}`;
  return { text: '?', keyOf: storedBytes, now: NOW, since: `${usSince1970(updatedAt)} / 1000`, over };
}

function ofOlderPrograms({ expiresAt, updatedAt }: LeaseColumns, abandonedAfterMs: number) {
  const isAbandoned =
    Number.isFinite(abandonedAfterMs) && updatedAt !== undefined
      ? `${updatedAt} < current_timestamp(6) - interval ${Math.ceil(abandonedAfterMs * 1000)} microsecond`
      : 'false';
  return {
    // Bytes, which are safe in every SQL mode, said to be text, which takes on the column's character set and collation.
    text: '_utf8mb4 ?',
    keyOf: bytesOf,
    now: 'current_timestamp(6)',
    since: updatedAt === undefined ? 'null' : `unix_timestamp(${updatedAt}) * 1000`,
    over: `coalesce(${expiresAt} <= ${NOW}, ${isAbandoned}, false)`,
  };
}
