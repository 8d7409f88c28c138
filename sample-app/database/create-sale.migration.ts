import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateSale1760000000001 implements MigrationInterface {
  readonly name = 'CreateSale1760000000001';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      'create table sale (id integer primary key, pieces integer not null, stock integer not null)',
    );
    await queryRunner.query(`
      create table purchase (
        id integer primary key autoincrement,
        sale_id integer not null references sale,
        buyer text not null,
        fencing_token text unique,
        unique (sale_id, buyer)
      )`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('drop table purchase');
    await queryRunner.query('drop table sale');
  }
}
