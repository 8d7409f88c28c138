import { type DynamicModule, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { LockInspectorModule } from 'nestjs-distributed-lock/inspector';
import { LockMetricsModule } from 'nestjs-distributed-lock/metrics';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import { DataSource } from 'typeorm';
import { DatabaseModule, makeSqliteOptions } from './database/database.module.js';
import { JobsModule } from './jobs/jobs.module.js';
import { MetricsController } from './metrics.controller.js';
import { SaleModule } from './sale/sale.module.js';
import { type Settings, SettingsModule } from './settings.js';

@Module({})
export class AppModule {
  static with(settings: Settings): DynamicModule {
    const { label, saleDb, ttlMs } = settings;
    return {
      module: AppModule,
      imports: [
        SettingsModule.with(settings),
        DatabaseModule.with(makeSqliteOptions(saleDb)),
        ScheduleModule.forRoot(),
        // The locks are rows in the database of the sale. For another backend, use its factory here, such as `redis({ url })`.
        DistributedLockModule.forRootAsync({
          inject: [DataSource],
          useFactory: (dataSource: DataSource) => ({
            backends: { default: typeorm({ dataSource }) },
            label,
            defaults: { ttlMs },
          }),
        }),
        // A public application needs a guard here, because the page frees locks.
        LockInspectorModule.forRoot({ guard: 'none' }),
        LockMetricsModule.forRoot(),
        SaleModule,
        JobsModule,
      ],
      controllers: [MetricsController],
    };
  }
}
