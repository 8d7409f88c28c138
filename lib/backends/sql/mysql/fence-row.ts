import type { Query } from '../connections/query.js';
import { toStoredBytes } from '../tables/stored-key.js';

/**
 * Inserts the row, or locks an existing row without a change. A `select … for update` of a missing row would lock its
 * neighbours.
 */
export async function lockFenceRow(query: Query, table: string, resource: string): Promise<void> {
  await query(`insert into ${table} (resource, token) values (?, 0) on duplicate key update token = token`, [
    toStoredBytes(resource),
  ]);
}
