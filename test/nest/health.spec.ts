import { describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { DistributedLockModule, LockService } from 'nestjs-distributed-lock';
import { ReportedHealth } from 'nestjs-distributed-lock/core';
import { memory, MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { LockHealthIndicator, LockHealthModule } from 'nestjs-distributed-lock/terminus';
import { application, closing } from './apps.js';

/** A store whose server is what the test says. */
class Reporting extends MemoryLeaseStore {
  readonly health = new ReportedHealth();
  starts = 0;
  answers = true;
  async start(): Promise<void> {
    this.starts += 1;
    if (this.answers) this.health.report('up');
  }
}

@Controller('health')
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly locks: LockHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check() {
    return this.health.check([() => this.locks.check('locks'), () => this.locks.check('ledger', 'ledger')]);
  }
}

describe('the health of locks', () => {
  const open = async (store: MemoryLeaseStore) => {
    const app = await application({
      imports: [
        DistributedLockModule.forRoot({ backends: { default: store, ledger: memory() }, logger: false }),
        TerminusModule.forRoot({ logger: false }),
        LockHealthModule,
      ],
      controllers: [HealthController],
    });
    await app.listen(0, '127.0.0.1');
    const check = async () => {
      const response = await fetch(`${await app.getUrl()}/health`);
      return { status: response.status, body: await response.json() };
    };
    return { app, check };
  };

  it('is up with what this process holds, with advice, and with the servers one by one', async () => {
    const store = new Reporting();
    store.health.setAdvice('memory', 'maxmemory-policy evicts locks: set noeviction');
    const { app, check } = await open(store);
    await app.get(LockService).acquire('a');
    await expect(check()).resolves.toMatchObject({
      status: 200,
      body: {
        details: {
          locks: {
            status: 'up',
            backend: 'memory',
            held: 1,
            inJeopardy: 0,
            detail: 'maxmemory-policy evicts locks: set noeviction',
          },
          ledger: { status: 'up', backend: 'memory', held: 0 },
        },
      },
    });
  });

  it('is down with the trouble, and says which locks are in doubt', async () => {
    const store = new Reporting();
    const { app, check } = await open(store);
    await app.get(LockService).acquire('a');
    store.health.report('down', 'the connection is lost');
    await expect(check()).resolves.toMatchObject({
      status: 503,
      body: { details: { locks: { status: 'down', detail: 'the connection is lost', held: 1, inJeopardy: 1 } } },
    });
  });

  it('asks while nothing is known, and idle is not up', async () => {
    const store = new Reporting();
    store.answers = false;
    const { check } = await open(store);
    const before = store.starts;
    await expect(check()).resolves.toMatchObject({
      status: 503,
      body: { details: { locks: { status: 'down', detail: 'nothing was heard of the server yet' } } },
    });
    store.answers = true;
    await expect(check()).resolves.toMatchObject({ status: 200 });
    await check();
    expect(store.starts).toBe(before + 2);
  });

  it('names the backends there are, when it is asked for another one', async () => {
    const { app } = await open(new Reporting());
    await expect(app.get(LockHealthIndicator, { strict: false }).check('locks', 'other')).rejects.toThrow(
      'there is no backend "other", only [default, ledger]',
    );
    closing(app);
  });
});
