import { setImmediate } from 'node:timers/promises';
import { Controller, Injectable, Param, Post } from '@nestjs/common';
import { DistributedLockModule, Locked, LockService, runDetached } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import PQueue from 'p-queue';

import { eventually } from '../support/eventually.js';
import { listening } from './apps.js';

let inside = 0;
let mostInside = 0;
const refusals: string[] = [];

@Injectable()
class Stock {
  readonly queue = new PQueue({ concurrency: 1 });

  constructor(readonly locks: LockService) {}

  async sell(): Promise<void> {
    mostInside = Math.max(mostInside, ++inside);
    for (let step = 0; step < 3; step += 1) await setImmediate();
    inside -= 1;
  }
}

@Controller()
class Sales {
  constructor(private readonly stock: Stock) {}

  /** Sends mail through the queue of all requests, under the lock. */
  @Post('mail/:way')
  @Locked('stock')
  async mail(): Promise<string> {
    inside += 1;
    await this.stock.queue.add(() => eventually(() => this.stock.queue.size > 0));
    for (let step = 0; step < 3; step += 1) await setImmediate();
    inside -= 1;
    return 'sent';
  }

  /** Sells through the queue, whose jobs lock. */
  @Post('sell/:way')
  async sell(@Param('way') way: string): Promise<string> {
    const { locks, queue } = this.stock;
    const job = () =>
      locks.withLock('stock', () => this.stock.sell()).catch((error: Error) => refusals.push(error.message));
    await queue.add(() => (way === 'detached' ? runDetached(job) : job()));
    return 'sold';
  }
}

describe('two requests over one queue', () => {
  it.each(['as it is', 'detached'])('are never inside together, %s', async (way) => {
    [inside, mostInside] = [0, 0];
    refusals.length = 0;
    const imports = [DistributedLockModule.forRoot(memory())];
    const url = await listening({ imports, controllers: [Sales], providers: [Stock] });
    const post = async (path: string): Promise<string> =>
      (await fetch(`${url}/${path}/${encodeURIComponent(way)}`, { method: 'POST' })).text();
    const mail = post('mail');
    await eventually(() => inside === 1);
    await expect(Promise.all([mail, post('sell')])).resolves.toEqual(['sent', 'sold']);
    if (way === 'detached') expect([mostInside, refusals]).toEqual([1, []]);
    else expect([mostInside, refusals]).toEqual([0, [expect.stringMatching(/reentrant: true.*runDetached/u)]]);
  });
});
