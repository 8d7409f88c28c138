import { type MigrationInterface, type QueryRunner, Table } from 'typeorm';

const SALE = new Table({
  name: 'sale',
  columns: [
    { name: 'id', type: 'integer', isPrimary: true },
    { name: 'pieces', type: 'integer' },
    { name: 'stock', type: 'integer' },
    { name: 'version', type: 'integer' },
  ],
});

const PURCHASE = new Table({
  name: 'purchase',
  columns: [
    { name: 'id', type: 'integer', isPrimary: true, isGenerated: true, generationStrategy: 'increment' },
    { name: 'sale_id', type: 'integer' },
    { name: 'buyer', type: 'varchar', length: '100' },
    { name: 'fencing_token', type: 'varchar', length: '20', isNullable: true, isUnique: true },
  ],
  indices: [{ columnNames: ['sale_id', 'buyer'], isUnique: true }],
  foreignKeys: [{ columnNames: ['sale_id'], referencedTableName: 'sale', referencedColumnNames: ['id'] }],
});

export class CreateSale1760000000001 implements MigrationInterface {
  readonly name = 'CreateSale1760000000001';

  async up(queryRunner: QueryRunner): Promise<void> {
    // The first table may exist already: MariaDB keeps it when the second one fails.
    for (const table of [SALE, PURCHASE]) await queryRunner.createTable(table.clone(), true);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const table of [PURCHASE, SALE]) await queryRunner.dropTable(table.clone());
  }
}
