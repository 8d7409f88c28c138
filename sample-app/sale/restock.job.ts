import { Injectable } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import { Locked } from 'nestjs-distributed-lock';
import { Restock } from './restock.js';
import { Sales } from './sales.js';

/** The sale that never ends. The flash sale, 42, is left alone. */
export const ENDLESS_SALE = 7;

@Injectable()
export class RestockJob {
  constructor(
    private readonly sales: Sales,
    private readonly restock: Restock,
  ) {}

  /** Every instance wakes up, one works, the others skip: they do not even wait for it. */
  @Cron(CronExpression.EVERY_MINUTE)
  @Locked('restock', { waitMs: 0, onBusy: 'skip' })
  async run(): Promise<void> {
    const { stock } = await this.sales.find(ENDLESS_SALE);
    if (stock === 0) await this.restock.fill(ENDLESS_SALE);
  }
}
