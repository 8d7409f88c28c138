/**
 * An application with a queue, a database and locks, whose modules are imported in the order of its first argument. The second
 * is the grace time of its locks.
 */
import { InjectQueue, BullModule, Processor, WorkerHost } from '@nestjs/bullmq';
import { Controller, Get, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import type { Job, Queue } from 'bullmq';
import { Redis } from 'ioredis';
import Database from 'libsql';
import { argv, env } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CurrentLock,
  currentLock,
  DistributedLockModule,
  Locked,
  type LockHandle,
  LockService,
} from 'nestjs-distributed-lock';
import { redis } from 'nestjs-distributed-lock/redis';

const WORK_MS = 2_000;

const url = env['REDIS_URL'] ?? '';
const { hostname: host, port } = new URL(url);

/** The record that the test reads: written under the lock, while the process may end at any moment. */
@Injectable()
class Report extends Redis {
  constructor() {
    super(url);
  }

  async work(name: string, locks: LockService): Promise<string> {
    await this.rpush('report', `${name} begins`);
    await sleep(WORK_MS);
    await locks.withLock(`nested_${name}`, () => sleep(50));
    const line = `${name} ends, held: ${currentLock()?.isHeld}`;
    await this.rpush('report', line);
    return line;
  }
}

@Processor('jobs')
class Jobs extends WorkerHost {
  constructor(
    private readonly locks: LockService,
    private readonly report: Report,
  ) {
    super();
  }

  @Locked('job_:job.data.id')
  async process(job: Job<{ id: string }>): Promise<string> {
    return this.report.work(`job ${job.data.id}`, this.locks);
  }
}

@Controller()
class Requests {
  constructor(
    @InjectQueue('jobs') private readonly queue: Queue,
    private readonly locks: LockService,
    private readonly report: Report,
  ) {}

  @Get('jobs')
  async add(): Promise<void> {
    await this.queue.addBulk(['1', '2', '3'].map((id) => ({ name: 'job', data: { id } })));
  }

  @Get('request')
  @Locked('request')
  async request(): Promise<string> {
    return this.report.work('request', this.locks);
  }

  @Get('hung')
  @Locked('hung')
  async hang(@CurrentLock() lock?: LockHandle): Promise<void> {
    lock?.signal.addEventListener(
      'abort',
      () => void this.report.rpush('report', `told: ${lock.signal.reason.reason}`),
    );
    await this.report.rpush('report', 'hangs');
    await new Promise(() => undefined);
  }
}

const IMPORTS = {
  lock: () => [DistributedLockModule.forRoot({ backend: redis({ url }), shutdownGraceMs: Number(argv[3] ?? 10_000) })],
  bull: () => [
    BullModule.forRoot({ connection: { host, port: Number(port) } }),
    BullModule.registerQueue({ name: 'jobs' }),
  ],
  typeorm: () => [TypeOrmModule.forRoot({ type: 'better-sqlite3', driver: Database, database: ':memory:' })],
};

const order = (argv[2] ?? '').split(',') as (keyof typeof IMPORTS)[];

@Module({
  imports: order.flatMap((name) => IMPORTS[name]()),
  controllers: [Requests],
  providers: [Jobs, Report],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
process.send?.({ url: await app.getUrl() });
