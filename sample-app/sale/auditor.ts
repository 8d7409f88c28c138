import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Leads, type LockHandle } from 'nestjs-distributed-lock';
import { LiveEvents } from '../live/live-events.js';
import { Sales } from './sales.js';

const FLASH_SALE = 42;
const EVERY_MS = 1_000;

@Injectable()
export class Auditor {
  constructor(
    private readonly sales: Sales,
    private readonly live: LiveEvents,
  ) {}

  /** One instance counts, for as long as it lives. When it stops or loses its lock, `signal` ends the loop, and another one leads. */
  @Leads('auditor')
  async audit({ signal }: LockHandle): Promise<void> {
    let reported = 0;
    for (;;) {
      const oversold = await this.sales.oversold(FLASH_SALE);
      if (oversold > reported) this.live.oversold(FLASH_SALE, oversold);
      reported = oversold;
      await pause(EVERY_MS, undefined, { signal });
    }
  }
}
