import { Inject, Injectable } from '@nestjs/common';
import { LockService } from 'nestjs-distributed-lock';
import { Sale } from '../database/sale.entity.js';
import { Transactions } from '../database/transactions.js';
import { SETTINGS, type Settings } from '../settings.js';
import { Sales } from './sales.js';

/** Refills a sale to the configured stock, under the same lock and fence as its purchases. */
@Injectable()
export class Restock {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly locks: LockService,
    private readonly transactions: Transactions,
    private readonly sales: Sales,
  ) {}

  /** @throws NotFoundException */
  async fill(saleId: number): Promise<Sale> {
    await this.sales.find(saleId);
    const { stock } = this.settings;
    return this.locks.withLock(`lock_sale_${saleId}`, (lock) =>
      this.transactions.runFenced(`sale:${saleId}`, lock, async (manager) => {
        const sale = await manager.findOneByOrFail(Sale, { id: saleId });
        return manager.save(Object.assign(sale, { stock, pieces: sale.pieces + stock - sale.stock }));
      }),
    );
  }
}
