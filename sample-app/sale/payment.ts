import { setTimeout as pause } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { LiveEvents } from '../live/live-events.js';
import { SETTINGS, type Settings } from '../settings.js';

/** Stands for the slow call in the middle of every real purchase, between reading the stock and writing it. */
@Injectable()
export class Payment {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly live: LiveEvents,
  ) {}

  async take(saleId: number, buyer: string): Promise<void> {
    this.live.paying(saleId, buyer);
    await pause(this.settings.paymentMs);
  }
}
