import { Body, Controller, Param, ParseIntPipe, Post } from '@nestjs/common';
import { updateVersioned } from 'nestjs-distributed-lock/typeorm';
import { Order } from '../database/order.entity.js';
import { Sale } from '../database/sale.entity.js';
import { Transactions } from '../database/transactions.js';
import { BuyerPipe } from './buyer.pipe.js';
import { readSale } from './sales.js';

/**
 * Sells without a lock, and starts again when the sale has changed since it was read. Do not mix this with sellers that use a
 * lock for the same sale: they do not compare the version.
 */
@Controller('sales/:id')
export class OptimisticSaleController {
  constructor(private readonly transactions: Transactions) {}

  @Post('purchases/optimistic')
  async purchase(
    @Param('id', ParseIntPipe) saleId: number,
    @Body(BuyerPipe) buyer: string,
  ): Promise<Order & { readonly retries: number }> {
    let attemptCount = 0;
    const order = await this.transactions.run(async (manager) => {
      attemptCount += 1;
      const { sale, order: existingOrder } = await readSale(manager, saleId, buyer);
      if (existingOrder) return existingOrder;
      await updateVersioned(manager, Sale, sale, { stock: sale.stock - 1 });
      return manager.save(manager.create(Order, { saleId, buyer, fencingToken: null }));
    });
    return Object.assign(order, { retries: attemptCount - 1 });
  }
}
