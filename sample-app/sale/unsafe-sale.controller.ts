import { Body, Controller, Get, Param, ParseIntPipe, Post } from '@nestjs/common';
import type { Order } from '../database/order.entity.js';
import type { Sale } from '../database/sale.entity.js';
import { Transactions } from '../database/transactions.js';
import { LiveEvents } from '../live/live-events.js';
import { BuyerPipe } from './buyer.pipe.js';
import { Payment } from './payment.js';
import { readSale, Sales, writeOrder } from './sales.js';

/** Everybody writes this first: read, pay, write. With `UNSAFE=1` it replaces `SaleController`, and oversells. */
@Controller('sales/:id')
export class UnsafeSaleController {
  constructor(
    private readonly sales: Sales,
    private readonly transactions: Transactions,
    private readonly payment: Payment,
    private readonly live: LiveEvents,
  ) {}

  @Post('purchases')
  async purchase(@Param('id', ParseIntPipe) saleId: number, @Body(BuyerPipe) buyer: string): Promise<Order> {
    const { sale, order } = await this.transactions.run((manager) => readSale(manager, saleId, buyer));
    if (order) return order;
    await this.payment.take(saleId, buyer);
    const sold = await this.transactions.run((manager) => writeOrder(manager, { sale, buyer, token: null }));
    this.live.sold(sold);
    return sold;
  }

  @Get()
  sale(@Param('id', ParseIntPipe) id: number): Promise<Sale> {
    return this.sales.find(id);
  }

  @Get('orders')
  orders(@Param('id', ParseIntPipe) id: number): Promise<Order[]> {
    return this.sales.orders(id);
  }
}
