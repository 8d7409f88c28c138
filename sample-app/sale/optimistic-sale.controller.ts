import { Body, Controller, Param, ParseIntPipe, Post } from '@nestjs/common';
import { updateVersioned } from 'nestjs-distributed-lock/typeorm';
import { Order } from '../database/order.entity.js';
import { Sale } from '../database/sale.entity.js';
import { Transactions } from '../database/transactions.js';
import { LiveEvents } from '../live/live-events.js';
import { BuyerPipe } from './buyer.pipe.js';
import { readSale } from './sales.js';

/**
 * Sells without any lock: whoever finds that the sale has changed since it was read starts again. Sell all pieces of a sale in
 * this way or none, as those who sell under a lock rely on nobody else changing the stock, and compare no version.
 */
@Controller('sales/:id')
export class OptimisticSaleController {
  constructor(
    private readonly transactions: Transactions,
    private readonly live: LiveEvents,
  ) {}

  @Post('purchases/optimistic')
  async purchase(
    @Param('id', ParseIntPipe) saleId: number,
    @Body(BuyerPipe) buyer: string,
  ): Promise<Order & { readonly retries: number }> {
    let attempts = 0;
    const { order, isNew } = await this.transactions.run(async (manager) => {
      attempts += 1;
      const { sale, order: former } = await readSale(manager, saleId, buyer);
      if (former) return { order: former, isNew: false };
      await updateVersioned(manager, Sale, sale, { stock: sale.stock - 1 });
      const sold = manager.create(Order, { saleId, buyer, fencingToken: null });
      return { order: await manager.save(sold), isNew: true };
    });
    if (isNew) this.live.sold(order);
    return Object.assign(order, { retries: attempts - 1 });
  }
}
