import { packMetadata } from '../../../core/index.js';
import { bytesOf, changed, insertedId } from './driver.js';
import { DatabaseError } from '../connections/database-error.js';
import { IN_US, NOW, NOW_US } from './clock.js';
import { refusalOf } from '../dialect/refusal.js';
import type { LeaseRow, Query } from '../dialect/sql-dialect.js';
import { partsOf } from '../tables/table-name.js';
import { type ExistingTableDialect, quotedNames } from '../dialect/existing-table-dialect.js';

/**
 * Bytes, which are safe in every SQL mode, said to be text, which takes on the column's character set and collation.
 */
const TEXT = '_utf8mb4 ?';

/** How often a step starts again because the row came or went meanwhile. */
const ROUNDS = 5;

const quote = (name: string): string => `\`${name}\``;
const metadataOf = (metadata: LeaseRow['metadata']): Buffer => bytesOf(packMetadata(metadata));

export const mysqlExistingTable: ExistingTableDialect = {
  quote,

  describe(query, table) {
    const { schema, name } = partsOf(table);
    return query(
      `select column_name as name, column_type as type, character_set_name as charset,
         is_nullable = 'NO' and column_default is null and extra not like '%auto_increment%' as required,
         column_name in (
           select min(column_name) from information_schema.statistics
           where table_schema = coalesce(?, database()) and table_name = ? and non_unique = 0
           group by index_name having count(*) = 1 and max(sub_part) is null
         ) as \`unique\`
       from information_schema.columns where table_schema = coalesce(?, database()) and table_name = ?`,
      [schema, name, schema, name],
    );
  },

  types: {
    key: /^(varchar|char|tinytext|text).*$/u,
    owner: /^(varchar|char|tinytext|text).*$/u,
    updatedAt: /^(timestamp|datetime|date\b).*$/u,
    expiresAt: /^datetime\(6\)$/u,
    token: /^bigint/u,
    metadata: /text$/u,
  },

  added: { expiresAt: 'datetime(6)', token: 'bigint', metadata: 'text' },

  writes(charset) {
    if (charset === 'utf8mb4') return /^[^]*$/u;
    return charset === 'utf8mb3' || charset === 'utf8' ? /^[\0-\uffff]*$/u : /^[\0-\x7f]*$/u;
  },

  statements(table) {
    const its = quotedNames(table, quote);
    const { rows, touch } = its;
    const abandoned =
      Number.isFinite(table.abandonedAfterMs) && its.updatedAt !== undefined
        ? `${its.updatedAt} < current_timestamp(6) - interval ${Math.ceil(table.abandonedAfterMs * 1000)} microsecond`
        : 'false';
    const over = `(${its.owner} = ${TEXT} or coalesce(${its.expiresAt} <= ${NOW}, ${abandoned}, false))`;

    /** Takes over a row. Assignments run from left to right: only that of the token needs the old owner. */
    const take = (query: Query, { key, owner, ttlMs, metadata }: LeaseRow) =>
      query(
        `update ${rows} set
           ${its.token} = last_insert_id(if(${its.owner} = ${TEXT}, ${its.token}, greatest(coalesce(${its.token}, 0) + 1, ${NOW_US}))),
           ${its.owner} = ${TEXT}, ${its.expiresAt} = ${IN_US}, ${its.metadata} = ${TEXT} ${touch.map((column) => `, ${column} = current_timestamp(6)`).join('')}
         where ${its.key} = ${TEXT} and ${over}`,
        [bytesOf(owner), bytesOf(owner), ttlMs * 1000, metadataOf(metadata), bytesOf(key), bytesOf(owner)],
      );

    /** The driver tells the new row's id, hence the second statement for the token. */
    const create = async (query: Query, { key, owner, ttlMs, metadata }: LeaseRow) => {
      await query(
        `insert ignore into ${rows} (${its.all})
         values (${TEXT}, ${TEXT}, ${NOW_US}, ${IN_US}, ${TEXT} ${touch.map(() => ', current_timestamp(6)').join('')})`,
        [bytesOf(key), bytesOf(owner), ttlMs * 1000, metadataOf(metadata)],
      );
      const [row] = await query(
        `select cast(${its.token} as char) as token from ${rows} where ${its.key} = ${TEXT} and ${its.owner} = ${TEXT}`,
        [bytesOf(key), bytesOf(owner)],
      );
      return typeof row?.['token'] === 'string' ? BigInt(row['token']) : undefined;
    };

    return {
      /** Looks first: each insert that conflicts would use up a number of the row's counter. */
      async tryAcquire(query, _table, lease) {
        let row: Record<string, unknown> | undefined;
        for (let round = 0; round < ROUNDS; round += 1) {
          [row] = await query(
            `select ${over} as is_over, cast(${its.metadata} as char) as metadata, if(${its.expiresAt} is null, cast(${its.owner} as char), null) as stranger,
               ${its.updatedAt === undefined ? 'null' : `unix_timestamp(${its.updatedAt}) * 1000`} as since,
               greatest(timestampdiff(microsecond, ${NOW}, ${its.expiresAt}) / 1000, 0) as remaining
             from ${rows} where ${its.key} = ${TEXT}`,
            [bytesOf(lease.owner), bytesOf(lease.key)],
          );
          if (row && Number(row['is_over']) === 0) return refusalOf(row);
          const fencingToken = row ? insertedId(await take(query, lease)) : await create(query, lease);
          if (fencingToken !== undefined) return { acquired: true, fencingToken };
        }
        if (!row) throw new DatabaseError('the server did not insert a row for the key', undefined);
        return refusalOf(row);
      },

      async renew(query, _table, { key, owner, ttlMs }) {
        const touched = touch.map((column) => `, ${column} = current_timestamp(6)`).join('');
        return changed(
          await query(
            `update ${rows} set ${its.expiresAt} = ${IN_US} ${touched} where ${its.key} = ${TEXT} and ${its.owner} = ${TEXT} and ${its.expiresAt} > ${NOW}`,
            [ttlMs * 1000, bytesOf(key), bytesOf(owner)],
          ),
        );
      },

      async isHeldBy(query, _table, { key, owner }) {
        const held = await query(
          `select 1 from ${rows} where ${its.key} = ${TEXT} and ${its.owner} = ${TEXT} and ${its.expiresAt} > ${NOW}`,
          [bytesOf(key), bytesOf(owner)],
        );
        return held.length === 1;
      },

      async release(query, _table, { key, owner }) {
        const ours = [bytesOf(key), bytesOf(owner)];
        const where = `where ${its.key} = ${TEXT} and ${its.owner} = ${TEXT}`;
        if (changed(await query(`delete from ${rows} ${where} and ${its.token} < ${NOW_US}`, ours))) return true;
        return changed(await query(`update ${rows} set ${its.expiresAt} = ${NOW} ${where}`, ours));
      },

      async reap(query, _table, idleMs) {
        const idle = `${its.expiresAt} < ${NOW} - interval ? microsecond`;
        const found = await query(`select ${its.key} as k from ${rows} where ${idle} limit 1000`, [idleMs * 1000]);
        for (const { k: key } of found) {
          await query(`delete from ${rows} where ${its.key} = ${TEXT} and ${idle}`, [
            bytesOf(String(key)),
            idleMs * 1000,
          ]);
        }
      },
    };
  },
};
