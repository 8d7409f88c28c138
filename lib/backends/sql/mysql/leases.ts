import { packMetadata } from '../../../core/index.js';
import { DatabaseError } from '../connections/database-error.js';
import type { Query } from '../connections/query.js';
import {
  type LeaseColumns,
  type LeaseRow,
  type LeaseStatements,
  listColumnNames,
  MAX_REAPED_ROWS,
} from '../dialect/lease-statements.js';
import { KEYS_PER_PAGE, readKeyPages } from '../dialect/key-pages.js';
import { parseRefusal, parseState } from '../dialect/refusal.js';
import { fromStoredKey, toStoredBytes } from '../tables/stored-key.js';
import { MICROSECONDS_FROM_NOW_SQL, NOW_SQL, NOW_MICROSECONDS_SQL, microsecondsSince1970Sql } from './clock.js';
import { decodeTexts, getLastInsertId, hasChangedRow, textBytesSql, toBytes } from './driver.js';

/** Maximum number of rounds. A round is repeated if the row appears, vanishes or becomes free between statements. */
const MAX_ROUNDS = 5;

/** Returns statements for any isolation level: each is a transaction on one row, except in `keys` and `reap`. */
export function mysqlLeases(columns: LeaseColumns): LeaseStatements {
  const { table, updatedAt, existingTable, ...columnNames } = columns;
  const { textPlaceholder, toKeyValue, nowSql, heldSinceSql, isFreeSql } = existingTable
    ? createExistingTableSql(columns, existingTable.abandonedAfterMs)
    : createOwnTableSql(columns);
  const setUpdatedAtSql = updatedAt === undefined ? '' : `, ${updatedAt} = ${nowSql}`;
  const keyBytesSql = existingTable ? textBytesSql(columnNames.key) : columnNames.key;
  const isOwnRowSql = `${columnNames.key} = ${textPlaceholder} and ${columnNames.owner} = ${textPlaceholder}`;

  /**
   * Takes the row if it is free, or already has this owner. Resolves to its token, or otherwise to `undefined`. MySQL
   * assigns from left to right, so the token, which depends on the old owner, is first.
   */
  const takeRow = async (query: Query, { key, owner, ttlMs, metadata }: LeaseRow) => {
    const ownerBytes = toBytes(owner);
    const answer = await query(
      `update ${table} set
         ${columnNames.token} = last_insert_id(if(${columnNames.owner} = ${textPlaceholder} and ${columnNames.expiresAt} > ${NOW_SQL}, ${columnNames.token}, greatest(coalesce(${columnNames.token}, 0) + 1, ${NOW_MICROSECONDS_SQL}))),
         ${columnNames.owner} = ${textPlaceholder}, ${columnNames.expiresAt} = ${MICROSECONDS_FROM_NOW_SQL}, ${columnNames.metadata} = ${textPlaceholder} ${setUpdatedAtSql}
       where ${columnNames.key} = ${textPlaceholder} and (${columnNames.owner} = ${textPlaceholder} or ${isFreeSql})`,
      [ownerBytes, ownerBytes, ttlMs * 1000, toBytes(packMetadata(metadata)), toKeyValue(key), ownerBytes],
    );
    return getLastInsertId(answer);
  };

  /**
   * Inserts a row for the key. Resolves to the row's token, or to `undefined` when nothing was inserted. In an existing
   * table, a second statement raises the token. The insertion's own token is the time of its start, and others may have
   * had the key while it waited. The driver may also return an `auto_increment` number instead of the token.
   */
  const insertRow = async (query: Query, { key, owner, ttlMs, metadata }: LeaseRow) => {
    const answer = await query(
      `insert ignore into ${table} (${listColumnNames(columns)})
       values (${textPlaceholder}, ${textPlaceholder}, last_insert_id(${NOW_MICROSECONDS_SQL}), ${MICROSECONDS_FROM_NOW_SQL}, ${textPlaceholder} ${updatedAt === undefined ? '' : `, ${nowSql}`})`,
      [toKeyValue(key), toBytes(owner), ttlMs * 1000, toBytes(packMetadata(metadata))],
    );
    if (!existingTable) return getLastInsertId(answer);
    const raiseTokenSql = `update ${table} set ${columnNames.token} = last_insert_id(greatest(${columnNames.token} + 1, ${NOW_MICROSECONDS_SQL})) where ${isOwnRowSql}`;
    return getLastInsertId(await query(raiseTokenSql, [toKeyValue(key), toBytes(owner)]));
  };

  return {
    /** Reads an existing table before it inserts: each conflicting insert would use up an `auto_increment` number. */
    async tryAcquire(query, lease) {
      let row: Record<string, unknown> | undefined;
      for (let round = 0; round < MAX_ROUNDS; round += 1) {
        const takenToken = row || !existingTable ? await takeRow(query, lease) : undefined;
        if (takenToken !== undefined) return { acquired: true, fencingToken: takenToken };
        const rows = await query(
          `select ${columnNames.owner} = ${textPlaceholder} or ${isFreeSql} as is_free, ${textBytesSql(columnNames.metadata)} as metadata, ${heldSinceSql} as since,
             if(${columnNames.expiresAt} is null, ${textBytesSql(columnNames.owner)}, null) as legacy_owner,
             greatest(timestampdiff(microsecond, ${NOW_SQL}, ${columnNames.expiresAt}) / 1000, 0) as remaining
           from ${table} where ${columnNames.key} = ${textPlaceholder}`,
          [toBytes(lease.owner), toKeyValue(lease.key)],
        );
        [row] = decodeTexts(rows);
        if (row && Number(row['is_free']) === 0) return parseRefusal(row);
        const insertedToken = row ? undefined : await insertRow(query, lease);
        if (insertedToken !== undefined) return { acquired: true, fencingToken: insertedToken };
      }
      // `insert ignore` reports no error for a row that it did not insert.
      if (!row) throw new DatabaseError('the server did not insert a row for the key', undefined);
      return parseRefusal(row);
    },

    async renew(query, { key, owner, ttlMs }) {
      const answer = await query(
        `update ${table} set ${columnNames.expiresAt} = ${MICROSECONDS_FROM_NOW_SQL} ${existingTable ? setUpdatedAtSql : ''} where ${isOwnRowSql} and ${columnNames.expiresAt} > ${NOW_SQL}`,
        [ttlMs * 1000, toKeyValue(key), toBytes(owner)],
      );
      return hasChangedRow(answer);
    },

    /**
     * Deletes a row of an existing table only if the clock has passed its token. The next token, which is the time,
     * could otherwise be the same or lower.
     */
    async release(query, { key, owner }) {
      const values = [toKeyValue(key), toBytes(owner)];
      const deleteSql = `delete from ${table} where ${isOwnRowSql} and ${columnNames.token} < ${NOW_MICROSECONDS_SQL}`;
      if (existingTable && hasChangedRow(await query(deleteSql, values))) return true;
      const clearOwnerSql = existingTable ? '' : `, ${columnNames.owner} = null, ${columnNames.metadata} = null`;
      return hasChangedRow(
        await query(
          `update ${table} set ${columnNames.expiresAt} = ${NOW_SQL} ${clearOwnerSql} where ${isOwnRowSql}`,
          values,
        ),
      );
    },

    async isHeldBy(query, { key, owner }) {
      const selectHeldSql = `select 1 from ${table} where ${isOwnRowSql} and ${columnNames.expiresAt} > ${NOW_SQL}`;
      return (await query(selectHeldSql, [toKeyValue(key), toBytes(owner)])).length === 1;
    },

    async look(query, key) {
      const rows = await query(
        `select ${textBytesSql(columnNames.owner)} as owner, cast(${columnNames.token} as char) as token,
           ${textBytesSql(columnNames.metadata)} as metadata, ${heldSinceSql} as since,
           if(${columnNames.expiresAt} is null, ${textBytesSql(columnNames.owner)}, null) as legacy_owner,
           greatest(timestampdiff(microsecond, ${NOW_SQL}, ${columnNames.expiresAt}) / 1000, 0) as remaining
         from ${table} where ${columnNames.key} = ${textPlaceholder} and not (${isFreeSql})`,
        [toKeyValue(key)],
      );
      return parseState(decodeTexts(rows)[0]);
    },

    keys(query, prefix) {
      const selectPageSql = (comparison: string): string => `select ${keyBytesSql} as name from ${table}
        where ${columnNames.key} ${comparison} ${textPlaceholder} and left(${columnNames.key}, char_length(${textPlaceholder})) = ${textPlaceholder} and not (${isFreeSql})
        order by ${columnNames.key} limit ${KEYS_PER_PAGE}`;
      const prefixBytes = toBytes(prefix);
      const readPage = (comparison: string, name: string) =>
        query(selectPageSql(comparison), [toBytes(name), prefixBytes, prefixBytes]);
      return readKeyPages(prefix, readPage, existingTable ? (name) => name : fromStoredKey);
    },

    /** Reads the keys without locks before it deletes: a `delete` by time alone would lock every row that it passes. */
    async reap(query, idleMs) {
      const isIdleSql = `${columnNames.expiresAt} < ${NOW_SQL} - interval ? microsecond`;
      const idleRows = await query(
        `select ${keyBytesSql} as k from ${table} where ${isIdleSql} limit ${MAX_REAPED_ROWS}`,
        [idleMs * 1000],
      );
      const keys = idleRows.map(({ k: key }) => key);
      if (keys.length === 0) return false;
      const isAmongKeysSql = `${columnNames.key} in (${keys.map(() => textPlaceholder).join(', ')})`;
      await query(`delete from ${table} where ${isAmongKeysSql} and ${isIdleSql}`, [...keys, idleMs * 1000]);
      return keys.length === MAX_REAPED_ROWS;
    },
  };
}

function createOwnTableSql({ owner, expiresAt, updatedAt = '' }: LeaseColumns) {
  const isFreeSql = `${owner} is null or ${expiresAt} <= ${NOW_SQL}`;
  return {
    textPlaceholder: '?',
    toKeyValue: toStoredBytes,
    nowSql: NOW_SQL,
    heldSinceSql: `${microsecondsSince1970Sql(updatedAt)} / 1000`,
    isFreeSql,
  };
}

function createExistingTableSql({ expiresAt, updatedAt }: LeaseColumns, abandonedAfterMs: number) {
  const isAbandonedSql =
    Number.isFinite(abandonedAfterMs) && updatedAt !== undefined
      ? `${updatedAt} < current_timestamp(6) - interval ${Math.ceil(abandonedAfterMs * 1000)} microsecond`
      : 'false';
  return {
    // Bytes are safe in every SQL mode. Declared as text, they take on the column's character set and collation.
    textPlaceholder: '_utf8mb4 ?',
    toKeyValue: toBytes,
    nowSql: 'current_timestamp(6)',
    heldSinceSql: updatedAt === undefined ? 'null' : `unix_timestamp(${updatedAt}) * 1000`,
    isFreeSql: `coalesce(${expiresAt} <= ${NOW_SQL}, ${isAbandonedSql}, false)`,
  };
}
