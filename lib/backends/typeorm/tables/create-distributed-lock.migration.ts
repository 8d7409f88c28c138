import type { MigrationInterface, QueryRunner } from 'typeorm';
import { dialectOf } from '../databases.js';
import { createTable, DEFAULT_FENCE_TABLE, DEFAULT_LOCK_TABLE } from './lock-table.js';
import { quotedTable } from './table-name.js';

/** Creates the lock table and the fence table under their default names. Put it into `migrations`. */
export class CreateDistributedLock1760000000000 implements MigrationInterface {
  readonly name = 'CreateDistributedLock1760000000000';

  async up(queryRunner: QueryRunner): Promise<void> {
    const { options } = queryRunner.connection;
    const dialect = dialectOf(options.type);
    await queryRunner.query(createTable(dialect, quotedTable(dialect, options, DEFAULT_LOCK_TABLE), 'lock'));
    await queryRunner.query(createTable(dialect, quotedTable(dialect, options, DEFAULT_FENCE_TABLE), 'fence'));
  }

  /** Tokens start again afterwards: run it only when nothing compares them any more. */
  async down(queryRunner: QueryRunner): Promise<void> {
    const { options } = queryRunner.connection;
    const dialect = dialectOf(options.type);
    await queryRunner.query(`drop table ${quotedTable(dialect, options, DEFAULT_FENCE_TABLE)}`);
    await queryRunner.query(`drop table ${quotedTable(dialect, options, DEFAULT_LOCK_TABLE)}`);
  }
}
