import libsql from 'libsql';
import { CreateDistributedLock1760000000000 } from 'nestjs-distributed-lock/typeorm';
import type { DataSourceOptions } from 'typeorm';
import { CreateSale1760000000001 } from './create-sale.migration.js';
import { Order } from './order.entity.js';
import { Sale } from './sale.entity.js';

/** The driver is synchronous: while it waits for another process's write, nothing else runs in ours. So it hardly waits. */
const BUSY_TIMEOUT_MS = 20;

export function databaseOptions(file: string): DataSourceOptions {
  return {
    type: 'better-sqlite3',
    driver: libsql,
    database: file,
    enableWAL: true,
    timeout: BUSY_TIMEOUT_MS,
    entities: [Sale, Order],
    migrations: [CreateDistributedLock1760000000000, CreateSale1760000000001],
    migrationsRun: true,
  };
}
