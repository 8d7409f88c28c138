import { type MigrationInterface, type QueryRunner, Table } from 'typeorm';

export class CreateSale1760000000001 implements MigrationInterface {
  readonly name = 'CreateSale1760000000001';

  async up(queryRunner: QueryRunner): Promise<void> {
    const sale = new Table({
      name: 'sale',
      columns: [
        { name: 'id', type: 'integer', isPrimary: true },
        { name: 'pieces', type: 'integer' },
        { name: 'stock', type: 'integer' },
        { name: 'version', type: 'integer' },
      ],
    });
    const purchase = new Table({
      name: 'purchase',
      columns: [
        { name: 'id', type: 'integer', isPrimary: true, isGenerated: true, generationStrategy: 'increment' },
        { name: 'sale_id', type: 'integer' },
        { name: 'buyer', type: 'varchar', length: '100', ...exact(queryRunner) },
        { name: 'fencing_token', type: 'varchar', length: '20', isNullable: true, isUnique: true },
      ],
      indices: [{ columnNames: ['sale_id', 'buyer'], isUnique: true }],
      foreignKeys: [{ columnNames: ['sale_id'], referencedTableName: 'sale', referencedColumnNames: ['id'] }],
    });
    // MariaDB keeps the first table when the second one fails.
    await queryRunner.createTable(sale, true);
    await queryRunner.createTable(purchase, true);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.dropTable('purchase');
    await queryRunner.dropTable('sale');
  }
}

/** MariaDB takes `Ann`, `ann` and `ann ` for one name, unless it is told not to. */
function exact({ connection }: QueryRunner): { charset?: string; collation?: string } {
  return connection.options.type === 'mariadb' ? { charset: 'utf8mb4', collation: 'utf8mb4_nopad_bin' } : {};
}
