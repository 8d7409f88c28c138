import { Injectable } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import { Locked, oncePer } from 'nestjs-distributed-lock';
import { Restock } from '../sale/restock.js';
import { Sales } from '../sale/sales.js';

const MINUTE_MS = 60_000;
/** The sale that never ends. The job leaves the flash sale, 42, alone. */
const ENDLESS_SALE = 7;

@Injectable()
export class RestockJob {
  constructor(
    private readonly sales: Sales,
    private readonly restock: Restock,
  ) {}

  /** Runs in one process of all that wake up, however short the work is and however late the others are. */
  @Cron(CronExpression.EVERY_MINUTE)
  @Locked('restock', oncePer(MINUTE_MS))
  async run(): Promise<void> {
    const { stock } = await this.sales.find(ENDLESS_SALE);
    if (stock === 0) await this.restock.fill(ENDLESS_SALE);
  }
}
