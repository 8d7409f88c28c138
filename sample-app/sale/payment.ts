import { setTimeout as pause } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../settings.js';

/** Simulates the slow call of a real purchase, between reading the stock and writing it. */
@Injectable()
export class Payment {
  constructor(@Inject(SETTINGS) private readonly settings: Settings) {}

  async take(_saleId: number, _buyer: string): Promise<void> {
    await pause(this.settings.paymentMs);
  }
}
