import { Body, Controller, Get, Param, ParseIntPipe, Post } from '@nestjs/common';
import { CurrentLock, Locked, type LockHandle, LockService } from 'nestjs-distributed-lock';
import type { Order } from '../database/order.entity.js';
import type { Sale } from '../database/sale.entity.js';
import { BuyerPipe } from './buyer.pipe.js';
import { Restock } from './restock.js';
import { Sales } from './sales.js';

/** Sells under the same lock in three ways, which exclude each other within and across processes. */
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

  /** Locks only a part of the method. */
  @Post('purchases/with-lock')
  purchaseWithLock(@Param('id', ParseIntPipe) id: number, @Body(BuyerPipe) buyer: string): Promise<Order> {
    return this.locks.withLock(`lock_sale_${id}`, (lock) => this.sales.sell(id, buyer, lock));
  }

  /** Calls a method of a service that has the decorator. */
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
