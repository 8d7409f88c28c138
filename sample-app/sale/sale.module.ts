import { Module } from '@nestjs/common';
import { OptimisticSaleController } from './optimistic-sale.controller.js';
import { Payment } from './payment.js';
import { Restock } from './restock.js';
import { SaleController } from './sale.controller.js';
import { Sales } from './sales.js';
import { UnsafeSaleController } from './unsafe-sale.controller.js';

@Module({
  controllers: [SaleController, OptimisticSaleController, UnsafeSaleController],
  providers: [Sales, Payment, Restock],
  exports: [Sales, Restock],
})
export class SaleModule {}
