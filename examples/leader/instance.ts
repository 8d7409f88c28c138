import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { env } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { DistributedLockModule, Leads, type LockHandle } from 'nestjs-distributed-lock';
import { redis } from 'nestjs-distributed-lock/redis';

@Injectable()
class Reindexer {
  @Leads('reindexer')
  async lead(term: LockHandle): Promise<void> {
    process.send?.('leads');
    while (!term.signal.aborted) await this.step(term);
    process.send?.('has ended its work');
  }

  private async step(_term: LockHandle): Promise<void> {
    await sleep(20); // in earnest: writes, each with the term's fencing token
  }
}

@Module({
  imports: [DistributedLockModule.forRoot(redis({ url: env['REDIS_URL'] ?? 'redis://localhost:6379' }))],
  providers: [Reindexer],
})
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
process.once('message', () => void app.close().then(() => process.disconnect()));
