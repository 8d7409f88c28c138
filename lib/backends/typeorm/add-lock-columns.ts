import type { QueryRunner } from 'typeorm';
import { queryOn } from '../sql/connections/query.js';
import type { ExistingTableColumns } from '../sql/dialect/existing-table-types.js';
import { addMissingColumns } from '../sql/existing-table/add-missing-columns.js';
import { existingTable } from '../sql/existing-table/existing-table.js';
import { tableHomeOf } from './databases.js';

/**
 * Adds the columns that an older table of locks lacks, empty and not required, so that older programs go on as before.
 * For the `up` of a migration of yours; again = nothing. What is there already is left alone.
 * @throws LockConfigurationError for a name that is more than a name
 */
export async function addLockColumns(
  queryRunner: QueryRunner,
  { tableName, columns }: { readonly tableName: string; readonly columns: ExistingTableColumns },
): Promise<void> {
  const home = tableHomeOf(queryRunner.connection.options);
  await addMissingColumns(queryOn(queryRunner), home.dialect, existingTable(home, { tableName, columns }));
}
