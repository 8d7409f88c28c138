import { BullModule, getQueueToken, Processor, WorkerHost } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type Job, type Queue, QueueEvents } from 'bullmq';
import { env } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { DistributedLockModule, Locked } from 'nestjs-distributed-lock';
import { redis } from 'nestjs-distributed-lock/redis';

const url = env['REDIS_URL'] ?? 'redis://localhost:6379';
const connection = { url };

interface Invoice {
  readonly customer: string;
}

/** Takes six jobs at a time, and one for each customer. */
@Processor('invoices', { concurrency: 6 })
class Invoices extends WorkerHost {
  readonly #running = new Map<string, number>();
  readonly most = new Map<string, number>();

  @Locked('customer_:job.data.customer')
  async process(job: Job<Invoice>): Promise<void> {
    const { customer } = job.data;
    const running = (this.#running.get(customer) ?? 0) + 1;
    this.#running.set(customer, running);
    this.most.set(customer, Math.max(running, this.most.get(customer) ?? 0));
    await sleep(100);
    this.#running.set(customer, running - 1);
  }
}

@Module({
  imports: [
    DistributedLockModule.forRoot({ backend: redis({ url }), logger: false }),
    BullModule.forRoot({ connection }),
    BullModule.registerQueue({ name: 'invoices' }),
  ],
  providers: [Invoices],
})
class Worker {}

const app = await NestFactory.createApplicationContext(Worker, { logger: ['error'] });
const queue = app.get<Queue<Invoice>>(getQueueToken('invoices'));
const events = new QueueEvents('invoices', { connection });
await events.waitUntilReady();

const customers = ['ann', 'bob', 'ann', 'bob', 'ann', 'bob'];
const jobs = await queue.addBulk(customers.map((customer) => ({ name: 'invoice', data: { customer } })));
await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));

const { most } = app.get(Invoices);
for (const customer of ['ann', 'bob']) console.log(`${customer}: 3 invoices, at most ${most.get(customer)} at a time`);
await events.close();
await app.close();
