import type { Query } from '../connections/query.js';
import { toStoredBytes } from '../tables/stored-key.js';

/**
 * Inserts the row, or locks an existing row without a change. For a missing row, `select … for update` would lock the
 * gap between its neighbours, and inserts into it would block.
 */
export async function lockFenceRow(query: Query, table: string, resource: string): Promise<void> {
  await query(`insert into ${table} (resource, token) values (?, 0) on duplicate key update token = token`, [
    toStoredBytes(resource),
  ]);
}
