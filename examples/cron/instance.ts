import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { env } from 'node:process';
import { DistributedLockModule, Locked, oncePer } from 'nestjs-distributed-lock';
import { redis } from 'nestjs-distributed-lock/redis';

const HOUR_MS = 3_600_000;

@Injectable()
class Report {
  @Locked('hourly-report', oncePer(HOUR_MS))
  async write(): Promise<string | undefined> {
    return 'writes the report';
  }
}

@Injectable()
class Clock {
  private ticked = false;

  constructor(private readonly report: Report) {}

  @Cron('* * * * * *') // '0 * * * *' in earnest
  async tick(): Promise<void> {
    if (this.ticked) return; // one tick is enough here
    this.ticked = true;
    const written = await this.report.write(); // undefined: another instance had this tick
    process.send?.(written ?? 'skips');
  }
}

@Module({
  imports: [
    ScheduleModule.forRoot(),
    DistributedLockModule.forRoot(redis({ url: env['REDIS_URL'] ?? 'redis://localhost:6379' })),
  ],
  providers: [Clock, Report],
})
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
process.once('disconnect', () => void app.close());
