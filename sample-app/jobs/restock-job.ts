import { Injectable } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import { Locked, oncePer } from 'nestjs-distributed-lock';
import { Restock } from '../sale/restock.js';
import { Sales } from '../sale/sales.js';

const MINUTE_MS = 60_000;
/** Id of the sale that never ends. The job does not touch the flash sale, 42. */
const ENDLESS_SALE_ID = 7;

@Injectable()
export class RestockJob {
  constructor(
    private readonly sales: Sales,
    private readonly restock: Restock,
  ) {}

  /** Runs in one process a minute, even if the work is short and another process wakes up late. */
  @Cron(CronExpression.EVERY_MINUTE)
  @Locked('restock', oncePer(MINUTE_MS))
  async run(): Promise<void> {
    const { stock } = await this.sales.find(ENDLESS_SALE_ID);
    if (stock === 0) await this.restock.fill(ENDLESS_SALE_ID);
  }
}
