import type { QueryRunner } from 'typeorm';
import { createQuery } from '../sql/connections/query.js';
import type { ExistingTableColumns } from '../sql/dialect/existing-table-types.js';
import { addMissingColumns } from '../sql/existing-table/add-missing-columns.js';
import { resolveExistingTable } from '../sql/existing-table/existing-table.js';
import { getTableContext } from './databases.js';

/**
 * Adds the columns that an older table of locks lacks, empty and not required, so that older programs go on as before.
 * Call it in the `up` of a migration of yours. Existing columns are left alone, so a second call does nothing.
 * @throws LockConfigurationError for a table or column that is no plain identifier
 */
export async function addLockColumns(
  queryRunner: QueryRunner,
  { tableName, columns }: { readonly tableName: string; readonly columns: ExistingTableColumns },
): Promise<void> {
  const tableContext = getTableContext(queryRunner.connection.options);
  await addMissingColumns(
    createQuery(queryRunner),
    tableContext.dialect,
    resolveExistingTable(tableContext, { tableName, columns }),
  );
}
