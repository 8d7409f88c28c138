import { randomBytes } from 'node:crypto';
import { DataSource } from 'typeorm';
import { databaseOptions } from '../sample-app/database/database-options.js';
import { databaseType } from '../sample-app/database/database-type.js';

/**
 * An empty database, which ends with the stampede.
 * @param place a file that does not exist yet, or the URL of a database whose server lets us create another one
 */
export async function newDatabase(place: string): Promise<AsyncDisposable & { readonly address: string }> {
  if (databaseType(place) === 'sqlite') return { address: place, [Symbol.asyncDispose]: async () => undefined };
  const name = `flash_sale_${randomBytes(4).toString('hex')}`;
  const address = new URL(place);
  address.pathname = name;
  await ask(place, `create database ${name}`);
  return { address: address.href, [Symbol.asyncDispose]: () => ask(place, `drop database ${name}`) };
}

async function ask(url: string, statement: string): Promise<void> {
  const dataSource = await new DataSource({ ...databaseOptions(url), migrationsRun: false }).initialize();
  try {
    await dataSource.query(statement);
  } finally {
    await dataSource.destroy();
  }
}
