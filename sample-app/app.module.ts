import { type DynamicModule, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { DataSource } from 'typeorm';
import { DatabaseModule } from './database/database.module.js';
import { LiveEvents } from './live/live-events.js';
import { LiveModule } from './live/live.module.js';
import { lockBackend } from './lock-backend.js';
import { SaleModule } from './sale/sale.module.js';
import { SettingsModule } from './settings.module.js';
import type { Settings } from './settings.js';

@Module({})
export class AppModule {
  static with(settings: Settings): DynamicModule {
    const { label, ttlMs } = settings;
    return {
      module: AppModule,
      imports: [
        SettingsModule.with(settings),
        DatabaseModule.with(settings),
        ScheduleModule.forRoot(),
        DistributedLockModule.forRootAsync({
          imports: [LiveModule],
          inject: [DataSource, LiveEvents],
          useFactory: (dataSource: DataSource, live: LiveEvents) => ({
            backends: { default: lockBackend(settings, dataSource) },
            label,
            defaults: { ttlMs },
            observers: [live],
          }),
        }),
        SaleModule.with(settings),
        LiveModule,
      ],
    };
  }
}
