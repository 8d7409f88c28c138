import { Body, Controller, Param, ParseIntPipe, Post } from '@nestjs/common';
import { CurrentLock, Locked, type LockHandle } from 'nestjs-distributed-lock';
import type { Order } from '../database/order.entity.js';
import { Transactions } from '../database/transactions.js';
import { BuyerPipe } from './buyer.pipe.js';
import { Payment } from './payment.js';
import { readSale, writeOrder } from './sales.js';

/** Reads, pays and writes without a lock, or without a fence, to show that both oversell. */
@Controller('sales/:id')
export class UnsafeSaleController {
  constructor(
    private readonly transactions: Transactions,
    private readonly payment: Payment,
  ) {}

  @Post('purchases/unsafe')
  purchase(@Param('id', ParseIntPipe) saleId: number, @Body(BuyerPipe) buyer: string): Promise<Order> {
    return this.#sell(saleId, buyer, null);
  }

  /** A process that stood still for longer than its lease writes what it has read before. */
  @Post('purchases/without-fence')
  @Locked('lock_sale_:id')
  async purchaseWithoutFence(
    @Param('id', ParseIntPipe) id: number,
    @Body(BuyerPipe) buyer: string,
    @CurrentLock() lock: LockHandle,
  ): Promise<Order> {
    return this.#sell(id, buyer, lock.fencingToken);
  }

  async #sell(saleId: number, buyer: string, token: bigint | null): Promise<Order> {
    const { sale, order } = await this.transactions.run((manager) => readSale(manager, saleId, buyer));
    if (order) return order;
    await this.payment.take(saleId, buyer);
    return this.transactions.run((manager) => writeOrder(manager, { sale, buyer, token }));
  }
}
