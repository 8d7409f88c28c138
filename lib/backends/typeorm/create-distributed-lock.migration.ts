import type { MigrationInterface, QueryRunner } from 'typeorm';
import { getTableContext } from './databases.js';
import { createTableSql, DEFAULT_FENCE_TABLE, DEFAULT_LOCK_TABLE } from '../sql/tables/lock-table.js';
import { quoteTable } from '../sql/tables/table-name.js';

/** Creates the lock table and the fence table under their default names. Put it into `migrations`. */
export class CreateDistributedLock1760000000000 implements MigrationInterface {
  readonly name = 'CreateDistributedLock1760000000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    const tableContext = getTableContext(queryRunner.connection.options);
    await queryRunner.query(createTableSql(tableContext.dialect, quoteTable(tableContext, DEFAULT_LOCK_TABLE), 'lock'));
    await queryRunner.query(
      createTableSql(tableContext.dialect, quoteTable(tableContext, DEFAULT_FENCE_TABLE), 'fence'),
    );
  }

  /** Drops the tables. New tokens may then be lower than old ones: run this only when nothing compares tokens. */
  async down(queryRunner: QueryRunner): Promise<void> {
    const tableContext = getTableContext(queryRunner.connection.options);
    await queryRunner.query(`drop table ${quoteTable(tableContext, DEFAULT_FENCE_TABLE)}`);
    await queryRunner.query(`drop table ${quoteTable(tableContext, DEFAULT_LOCK_TABLE)}`);
  }
}
