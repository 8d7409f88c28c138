import { setTimeout as pause } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Leads, type LockHandle } from 'nestjs-distributed-lock';
import { Sales } from '../sale/sales.js';

const FLASH_SALE = 42;
const INTERVAL_MS = 1_000;

@Injectable()
export class Auditor {
  readonly #logger = new Logger('Auditor');

  constructor(private readonly sales: Sales) {}

  /** Counts in one process, for as long as it leads. `signal` ends the loop when it stops or loses its lock; another one leads then. */
  @Leads('auditor')
  async audit({ signal }: LockHandle): Promise<void> {
    let reported = 0;
    for (;;) {
      const oversold = await this.sales.countOversold(FLASH_SALE);
      if (oversold > reported) this.#logger.warn(`sale ${FLASH_SALE} has sold ${oversold} pieces twice`);
      reported = oversold;
      await pause(INTERVAL_MS, undefined, { signal });
    }
  }
}
