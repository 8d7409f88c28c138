import libsql from 'libsql';
import { CreateDistributedLock1760000000000 } from 'nestjs-distributed-lock/typeorm';
import type { DataSourceOptions } from 'typeorm';
import { CreateSale1760000000001 } from './create-sale.migration.js';
import { databaseType } from './database-type.js';
import { Order } from './order.entity.js';
import { Sale } from './sale.entity.js';

/** The driver is synchronous: while it waits for another process's write, nothing else runs in ours. So it hardly waits. */
const BUSY_TIMEOUT_MS = 20;

/** @param database a file for SQLite, or the URL of a PostgreSQL or MariaDB database */
export function databaseOptions(database: string): DataSourceOptions {
  const ours = {
    entities: [Sale, Order],
    migrations: [CreateDistributedLock1760000000000, CreateSale1760000000001],
    migrationsRun: true,
  };
  const type = databaseType(database);
  if (type === 'postgres') return { ...ours, type, url: database };
  if (type === 'mariadb') return { ...ours, type, url: database };
  if (type === undefined) throw new Error('a database is a file, or a URL of PostgreSQL or MariaDB');
  return { ...ours, type: 'better-sqlite3', driver: libsql, database, enableWAL: true, timeout: BUSY_TIMEOUT_MS };
}
