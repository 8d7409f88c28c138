import type { MigrationInterface, QueryRunner } from 'typeorm';
import { dialectOf } from './sql-dialect.js';
import { DEFAULT_FENCE_TABLE, DEFAULT_LOCK_TABLE } from './lock-table.js';

/** Creates the lock table and the fence table under their default names. Put it into the data source's `migrations`. */
export class CreateDistributedLock1760000000000 implements MigrationInterface {
  readonly name = 'CreateDistributedLock1760000000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    const dialect = dialectOf(queryRunner.connection.options.type);
    await queryRunner.query(dialect.createLockTable(DEFAULT_LOCK_TABLE));
    await queryRunner.query(dialect.createFenceTable(DEFAULT_FENCE_TABLE));
  }

  /** Tokens start again afterwards: run it only when nothing compares them any more. */
  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`drop table ${DEFAULT_FENCE_TABLE}`);
    await queryRunner.query(`drop table ${DEFAULT_LOCK_TABLE}`);
  }
}
