import { type DynamicModule, Inject, Module, type OnModuleInit, type Type } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import libsql from 'libsql';
import { CreateDistributedLock1760000000000 } from 'nestjs-distributed-lock/typeorm';
import type { DataSourceOptions, EntityManager } from 'typeorm';
import { SETTINGS, type Settings } from '../settings.js';
import { CreateSale1760000000001 } from './create-sale.migration.js';
import { Order } from './order.entity.js';
import { Sale } from './sale.entity.js';
import { Transactions } from './transactions.js';

/** Maximum wait for the write of another process. It is short, because the synchronous driver blocks this process. */
const BUSY_TIMEOUT_MS = 20;

/** Entities and tables of the sale, the same in every database. */
export const SALE_TABLES = {
  entities: [Sale, Order],
  migrations: [CreateDistributedLock1760000000000, CreateSale1760000000001],
  migrationsRun: true,
};

/** @throws Error that does not show `file`: a URL may contain a password */
export function makeSqliteOptions(file: string): DataSourceOptions {
  if (file === '' || file.includes('://')) throw new Error('SALE_DB must be the path of a SQLite file');
  const connection = { database: file, driver: libsql, enableWAL: true, timeout: BUSY_TIMEOUT_MS };
  return { ...SALE_TABLES, ...connection, type: 'better-sqlite3' };
}

@Module({})
export class DatabaseModule implements OnModuleInit {
  /** @param transactions class to use instead, which may write in another way */
  static with(options: DataSourceOptions, transactions: Type<Transactions> = Transactions): DynamicModule {
    return {
      module: DatabaseModule,
      global: true,
      imports: [TypeOrmModule.forRoot(options)],
      providers: [{ provide: Transactions, useClass: transactions }],
      exports: [Transactions],
    };
  }

  constructor(
    private readonly transactions: Transactions,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.transactions.run((manager) => insertSales(manager, this.settings.stock));
  }
}

/** Inserts the flash sale, and the empty sale that the restock job fills. Leaves existing sales alone. */
export async function insertSales(manager: EntityManager, stock: number): Promise<void> {
  const sales = [
    { id: 42, pieces: stock, stock },
    { id: 7, pieces: 0, stock: 0 },
  ];
  await manager.createQueryBuilder().insert().into(Sale).values(sales).orIgnore().execute();
}
