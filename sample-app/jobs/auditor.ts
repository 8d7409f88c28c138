import { setTimeout as pause } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Leads, type LockHandle } from 'nestjs-distributed-lock';
import { Sales } from '../sale/sales.js';

const FLASH_SALE_ID = 42;
const INTERVAL_MS = 1_000;

@Injectable()
export class Auditor {
  readonly #logger = new Logger('Auditor');

  constructor(private readonly sales: Sales) {}

  /** Reports oversold pieces while this process leads. `signal` ends the loop when the process stops or loses its lock. */
  @Leads('auditor')
  async audit({ signal }: LockHandle): Promise<void> {
    let reportedCount = 0;
    for (;;) {
      const oversoldCount = await this.sales.countOversold(FLASH_SALE_ID);
      if (oversoldCount > reportedCount)
        this.#logger.warn(`sale ${FLASH_SALE_ID} has sold ${oversoldCount} pieces twice`);
      reportedCount = oversoldCount;
      await pause(INTERVAL_MS, undefined, { signal });
    }
  }
}
