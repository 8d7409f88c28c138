import { Body, Controller, Get, Param, ParseIntPipe, Post } from '@nestjs/common';
import { CurrentLock, Locked, type LockHandle, LockService } from 'nestjs-distributed-lock';
import type { Order } from '../database/order.entity.js';
import type { Sale } from '../database/sale.entity.js';
import { BuyerPipe } from './buyer.pipe.js';
import { Restock } from './restock.js';
import { Sales } from './sales.js';

/** Takes the same lock in three ways. All of them exclude each other, in this process and in every other one. */
@Controller('sales/:id')
export class SaleController {
  constructor(
    private readonly sales: Sales,
    private readonly restock: Restock,
    private readonly locks: LockService,
  ) {}

  @Post('purchases')
  @Locked('lock_sale_:id')
  async purchase(
    @Param('id', ParseIntPipe) id: number,
    @Body(BuyerPipe) buyer: string,
    @CurrentLock() lock: LockHandle,
  ): Promise<Order> {
    return this.sales.sell(id, buyer, lock);
  }

  /** Takes the lock around a part of the method only. */
  @Post('purchases/with-lock')
  purchaseWithLock(@Param('id', ParseIntPipe) id: number, @Body(BuyerPipe) buyer: string): Promise<Order> {
    return this.locks.withLock(`lock_sale_${id}`, (lock) => this.sales.sell(id, buyer, lock));
  }

  /** Calls a service whose method takes the lock. */
  @Post('purchases/by-service')
  purchaseByService(@Param('id', ParseIntPipe) id: number, @Body(BuyerPipe) buyer: string): Promise<Order> {
    return this.sales.buy(id, buyer);
  }

  @Post('restock')
  restockNow(@Param('id', ParseIntPipe) id: number): Promise<Sale> {
    return this.restock.fill(id);
  }

  @Get()
  sale(@Param('id', ParseIntPipe) id: number): Promise<Sale> {
    return this.sales.find(id);
  }

  @Get('orders')
  orders(@Param('id', ParseIntPipe) id: number): Promise<Order[]> {
    return this.sales.findOrders(id);
  }
}
