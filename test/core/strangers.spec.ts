import { EventEmitter } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { queue as asyncQueue } from 'async';
import Bottleneck from 'bottleneck';
import DataLoader from 'dataloader';
import { default as fastq } from 'fastq';
import { isLockError, LockService, runDetached } from 'nestjs-distributed-lock/core';
import { memory } from 'nestjs-distributed-lock/memory';
import PQueue from 'p-queue';

import { Gate } from '../support/index.js';

const JOBS = 20;

/** Who is inside the key at once, and who was refused. */
class Stock {
  readonly locks = new LockService(memory());
  inside = 0;
  mostInside = 0;
  served = 0;
  readonly refusals: string[] = [];

  /** A job under the lock, which calls `acknowledge` before its work is done. */
  async sell(acknowledge: () => unknown = () => undefined): Promise<void> {
    const work = async (): Promise<void> => {
      this.mostInside = Math.max(this.mostInside, ++this.inside);
      acknowledge();
      for (let step = 0; step < 3; step += 1) await setImmediate();
      this.inside -= 1;
      this.served += 1;
    };
    try {
      await this.locks.withLock('stock', work, { waitMs: 60_000 });
    } catch (error) {
      if (!isLockError(error, 'LOCK_DEADLOCK')) throw error;
      this.refusals.push(error.message);
      acknowledge();
    }
  }
}

/** Runs a job: at once, or in `runDetached`. */
type Start = (job: () => Promise<void>) => Promise<void>;

/** Code of others that calls back in the context of whoever was there first. */
const STRANGERS: Readonly<Record<string, (stock: Stock, start: Start) => Promise<unknown>>> = {
  'async.queue, whose jobs acknowledge early': async (stock, start) => {
    const jobs: Promise<void>[] = [];
    const work = (_job: number, acknowledge: () => void) => void jobs.push(start(() => stock.sell(acknowledge)));
    const queue = asyncQueue(work, 2);
    for (let job = 0; job < JOBS; job += 1) void queue.push(job);
    await queue.drain();
    await Promise.all(jobs);
  },
  'fastq, whose jobs acknowledge early': async (stock, start) => {
    const jobs: Promise<void>[] = [];
    const queue = fastq((_job: number, acknowledge: (error: null) => void) => {
      jobs.push(start(() => stock.sell(() => acknowledge(null))));
    }, 2);
    const drained = new Promise<void>((resolve) => (queue.drain = resolve));
    for (let job = 0; job < JOBS; job += 1) queue.push(job);
    await drained;
    await Promise.all(jobs);
  },
  'p-queue, awaited in a lock, with a job of somebody else behind': async (stock, start) => {
    const queue = new PQueue({ concurrency: 1 });
    const added = new Gate();
    const ours = stock.locks.withLock('stock', async () => {
      stock.inside += 1;
      const mail = queue.add(() => added.opened);
      await mail;
      for (let step = 0; step < 3; step += 1) await setImmediate();
      stock.inside -= 1;
    });
    await setImmediate();
    const theirs = queue.add(() => start(() => stock.sell()));
    added.open();
    await Promise.all([ours, theirs]);
  },
  'bottleneck, awaited in a lock, with a job of somebody else behind': async (stock, start) => {
    const limiter = new Bottleneck({ maxConcurrent: 1 });
    const added = new Gate();
    const ours = stock.locks.withLock('stock', async () => {
      stock.inside += 1;
      await limiter.schedule(() => added.opened);
      for (let step = 0; step < 3; step += 1) await setImmediate();
      stock.inside -= 1;
    });
    await setImmediate();
    const theirs = limiter.schedule(() => start(() => stock.sell()));
    added.open();
    await Promise.all([ours, theirs]);
  },
  'dataloader, whose batch runs under whoever began it': async (stock, start) => {
    const batches: Promise<void>[] = [];
    const loader = new DataLoader(async (ids: readonly number[]) => {
      batches.push(start(() => stock.sell()));
      return [...ids];
    });
    const begun = new Gate();
    const ours = stock.locks.withLock('stock', async () => {
      stock.inside += 1;
      const batch = loader.load(1);
      begun.open();
      await batch;
      stock.inside -= 1;
    });
    await begun.opened;
    await Promise.all([ours, loader.load(2)]);
    await Promise.all(batches);
  },
  'an emitter, whose listener locks': async (stock, start) => {
    const emitter = new EventEmitter();
    const jobs: Promise<void>[] = [];
    emitter.on('sold', () => void jobs.push(start(() => stock.sell())));
    await stock.locks.withLock('stock', async () => {
      stock.inside += 1;
      emitter.emit('sold');
      for (let step = 0; step < 3; step += 1) await setImmediate();
      stock.inside -= 1;
    });
    await Promise.all(jobs);
  },
  'branches of Promise.all': async (stock, start) => {
    let branches: Promise<unknown> = Promise.resolve();
    await stock.locks.withLock('stock', async () => {
      stock.inside += 1;
      branches = Promise.all([1, 2, 3].map(() => start(() => stock.sell())));
      await setImmediate();
      stock.inside -= 1;
    });
    await branches;
  },
};

describe.each(Object.entries(STRANGERS))('%s', (_, run) => {
  let stock = new Stock();
  beforeEach(() => void (stock = new Stock()));
  afterEach(() => stock.locks.close());

  it('lets one in at a time, and tells the others both cures', async () => {
    await run(stock, (job) => job());
    expect(stock.mostInside).toBeLessThanOrEqual(1);
    // Bottleneck starts jobs by a timer of whoever scheduled them: these wait for their turn.
    expect(stock.refusals.length + stock.served).toBeGreaterThan(0);
    for (const refusal of stock.refusals) expect(refusal).toMatch(/reentrant: true.*runDetached/u);
  });

  it('serves all in runDetached, one at a time', async () => {
    await run(stock, (job) => runDetached(job));
    expect([stock.mostInside, stock.refusals]).toEqual([1, []]);
    expect(stock.served).toBeGreaterThan(0);
    expect(stock.locks.inspect()).toEqual([]);
  });
});
