import { type DynamicModule, Module } from '@nestjs/common';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { DatabaseModule } from '../../sample-app/database/database.module.js';
import { Transactions } from '../../sample-app/database/transactions.js';
import { SaleModule } from '../../sample-app/sale/sale.module.js';
import { type Settings, SettingsModule } from '../../sample-app/settings.js';
import { makeDatabaseOptions } from './database-options.js';
import { type BackendName, LOCK_BACKENDS } from './lock-backends.js';
import { RowTransactions } from './row-transactions.js';

/** The sale of the sample application, on any backend and database, without its jobs and pages. */
@Module({})
export class ShopModule {
  /** @param server the address of the locks' server; empty for a backend that has none */
  static async with(backend: BackendName, server: string, settings: Settings): Promise<DynamicModule> {
    const { label, saleDb, ttlMs } = settings;
    const { create, writesInLock } = LOCK_BACKENDS[backend];
    const isInLock = writesInLock === true && server === saleDb;
    return {
      module: ShopModule,
      imports: [
        SettingsModule.with(settings),
        DatabaseModule.with(makeDatabaseOptions(saleDb), isInLock ? RowTransactions : Transactions),
        DistributedLockModule.forRoot({
          backends: { default: await create({ server, saleDb, ttlMs }) },
          label,
          defaults: { ttlMs },
        }),
        SaleModule,
      ],
    };
  }
}
