import { randomBytes } from 'node:crypto';
import { DataSource } from 'typeorm';
import { insertSales } from '../sample-app/database/database.module.js';
import { Order } from '../sample-app/database/order.entity.js';
import { makeDatabaseOptions } from './shop-process/database-options.js';
import { detectDatabaseType } from './shop-process/database-type.js';

/**
 * Creates an empty database, which ends with the stampede.
 * @param place a file that does not exist yet, or the URL of a database whose server lets us create another one
 */
export async function createDatabase(place: string): Promise<AsyncDisposable & { readonly address: string }> {
  const type = detectDatabaseType(place);
  if (type === 'sqlite') return { address: place, [Symbol.asyncDispose]: async () => undefined };
  const name = `flash_sale_${randomBytes(4).toString('hex')}`;
  const address = new URL(place);
  address.pathname = name;
  // MariaDB takes `Ann`, `ann` and `ann ` for one buyer unless it is told not to.
  const collation = type === 'mariadb' ? ' character set utf8mb4 collate utf8mb4_nopad_bin' : '';
  await execute(place, `create database ${name}${collation}`);
  return { address: address.href, [Symbol.asyncDispose]: () => execute(place, `drop database ${name}`) };
}

/** Creates the tables and the sales before the processes start, so that they do not all try to. */
export async function createSale(database: string, stock: number): Promise<void> {
  await using sale = await connect(database);
  await insertSales(sale.dataSource.manager, stock);
}

export async function findOrders(database: string): Promise<Order[]> {
  await using sale = await connect(database);
  return await sale.dataSource.getRepository(Order).find({ order: { id: 'asc' } });
}

async function execute(database: string, statement: string): Promise<void> {
  await using server = await connect(database, { migrationsRun: false });
  await server.dataSource.query(statement);
}

async function connect(database: string, options = {}): Promise<AsyncDisposable & { readonly dataSource: DataSource }> {
  const dataSource = await new DataSource({ ...makeDatabaseOptions(database), ...options }).initialize();
  return { dataSource, [Symbol.asyncDispose]: () => dataSource.destroy() };
}
