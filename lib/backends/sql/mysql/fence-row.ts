import type { Query } from '../connections/query.js';
import { storedBytes } from '../tables/stored-key.js';

/**
 * Makes the row of a resource, or locks the one that is there as it is. It is one statement, since a look for a missing
 * row would lock its neighbours.
 */
export async function lockFenceRow(query: Query, table: string, resource: string): Promise<void> {
  await query(`insert into ${table} (resource, token) values (?, 0) on duplicate key update token = token`, [
    storedBytes(resource),
  ]);
}
