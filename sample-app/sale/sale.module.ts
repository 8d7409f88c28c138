import { type DynamicModule, Module } from '@nestjs/common';
import { LiveModule } from '../live/live.module.js';
import { OptimisticSaleController } from './optimistic-sale.controller.js';
import { Payment } from './payment.js';
import { Restock } from './restock.js';
import { SaleController } from './sale.controller.js';
import { Sales } from './sales.js';
import { UnsafeSaleController } from './unsafe-sale.controller.js';

@Module({})
export class SaleModule {
  static with({ unsafe }: { readonly unsafe: boolean }): DynamicModule {
    return {
      module: SaleModule,
      imports: [LiveModule],
      controllers: [unsafe ? UnsafeSaleController : SaleController, OptimisticSaleController],
      providers: [Sales, Payment, Restock],
    };
  }
}
