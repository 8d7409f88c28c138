import { Inject, Injectable } from '@nestjs/common';
import { LockService } from 'nestjs-distributed-lock';
import type { EntityManager } from 'typeorm';
import { Sale } from '../database/sale.entity.js';
import { Transactions } from '../database/transactions.js';
import { LiveEvents } from '../live/live-events.js';
import { SETTINGS, type Settings } from '../settings.js';
import { Sales } from './sales.js';

/** Fills a sale up again, under the same lock and fence as its purchases. */
@Injectable()
export class Restock {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly locks: LockService,
    private readonly transactions: Transactions,
    private readonly sales: Sales,
    private readonly live: LiveEvents,
  ) {}

  /** @throws NotFoundException */
  async fill(saleId: number): Promise<Sale> {
    await this.sales.find(saleId);
    const sale = await this.locks.withLock(`lock_sale_${saleId}`, (lock) =>
      this.transactions.runFenced(`sale:${saleId}`, lock, (manager) => fill(manager, saleId, this.settings.stock)),
    );
    this.live.restocked(saleId, sale.stock);
    return sale;
  }
}

async function fill(manager: EntityManager, saleId: number, stock: number): Promise<Sale> {
  const sale = await manager.findOneByOrFail(Sale, { id: saleId });
  return manager.save(Object.assign(sale, { stock, pieces: sale.pieces + stock - sale.stock }));
}
