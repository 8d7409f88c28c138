import { Body, Controller, Param, ParseIntPipe, Post } from '@nestjs/common';
import type { Order } from '../database/order.entity.js';
import { Transactions } from '../database/transactions.js';
import { BuyerPipe } from './buyer.pipe.js';
import { Payment } from './payment.js';
import { readSale, writeOrder } from './sales.js';

/** Reads, pays and writes without lock and fence, to show that this oversells. */
@Controller('sales/:id')
export class UnsafeSaleController {
  constructor(
    private readonly transactions: Transactions,
    private readonly payment: Payment,
  ) {}

  @Post('purchases/unsafe')
  async purchase(@Param('id', ParseIntPipe) saleId: number, @Body(BuyerPipe) buyer: string): Promise<Order> {
    const { sale, order } = await this.transactions.run((manager) => readSale(manager, saleId, buyer));
    if (order) return order;
    await this.payment.take(saleId, buyer);
    return this.transactions.run((manager) => writeOrder(manager, { sale, buyer, token: null }));
  }
}
