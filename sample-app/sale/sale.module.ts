import { type DynamicModule, Module } from '@nestjs/common';
import { LiveModule } from '../live/live.module.js';
import type { Settings } from '../settings.js';
import { LOCK_BACKENDS } from '../lock-backends.js';
import { Auditor } from './auditor.js';
import { OptimisticSaleController } from './optimistic-sale.controller.js';
import { Payment } from './payment.js';
import { Restock } from './restock.js';
import { RestockJob } from './restock-job.js';
import { SaleController } from './sale.controller.js';
import { Sales } from './sales.js';
import { UnsafeSaleController } from './unsafe-sale.controller.js';

@Module({})
export class SaleModule {
  static with({ backend, unsafe }: Pick<Settings, 'backend' | 'unsafe'>): DynamicModule {
    const jobs = LOCK_BACKENDS[backend].endsWithConnection ? [] : [RestockJob];
    return {
      module: SaleModule,
      imports: [LiveModule],
      controllers: [unsafe ? UnsafeSaleController : SaleController, OptimisticSaleController],
      providers: [Sales, Payment, Restock, Auditor, ...jobs],
    };
  }
}
