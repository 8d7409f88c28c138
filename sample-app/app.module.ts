import { type DynamicModule, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { LockMetricsModule } from 'nestjs-distributed-lock/metrics';
import { DatabaseModule } from './database/database.module.js';
import { LiveEvents } from './live/live-events.js';
import { LiveModule } from './live/live.module.js';
import { LOCK_BACKENDS } from './lock-backends.js';
import { SaleModule } from './sale/sale.module.js';
import { type Settings, SettingsModule } from './settings.js';

@Module({})
export class AppModule {
  static with(settings: Settings): DynamicModule {
    const { backend, label, ttlMs } = settings;
    return {
      module: AppModule,
      imports: [
        SettingsModule.with(settings),
        DatabaseModule.with(settings),
        ScheduleModule.forRoot(),
        DistributedLockModule.forRootAsync({
          imports: [LiveModule],
          inject: [LiveEvents],
          useFactory: (live: LiveEvents) => ({
            backends: { default: LOCK_BACKENDS[backend].create(settings) },
            label,
            defaults: { ttlMs },
            observers: [live],
          }),
        }),
        LockMetricsModule.forRoot(),
        SaleModule.with(settings),
        LiveModule,
      ],
    };
  }
}
