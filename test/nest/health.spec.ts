import { Controller, Get } from '@nestjs/common';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { DistributedLockModule, LockService } from 'nestjs-distributed-lock';
import { ReportedHealth } from 'nestjs-distributed-lock/core';
import { memory, MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { LockHealthIndicator, LockHealthModule } from 'nestjs-distributed-lock/terminus';
import { eventually } from '../support/eventually.js';
import { application } from './apps.js';

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

/** A store that reports no health, and whose requests fail while the test says so. */
class Failing extends MemoryLeaseStore {
  fails = false;
  override async tryAcquire(
    ...args: Parameters<MemoryLeaseStore['tryAcquire']>
  ): ReturnType<MemoryLeaseStore['tryAcquire']> {
    if (this.fails) throw new Error('the server is gone');
    return super.tryAcquire(...args);
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
    await using _lock = await app.get(LockService).acquire('a');
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
    await using _lock = await app.get(LockService).acquire('a');
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

  it('is down while a store without a health of its own fails', async () => {
    const store = new Failing();
    const { app, check } = await open(store);
    await app.get(LockService).withLock('a', () => undefined);
    store.fails = true;
    const acquire = (key: string) => app.get(LockService).acquire(key, { waitMs: 1_000 });
    await Promise.all(['b', 'c'].map((key) => expect(acquire(key)).rejects.toThrow('the server is gone')));
    await eventually(() => app.get(LockService).health.status === 'down');
    await expect(check()).resolves.toMatchObject({
      status: 503,
      body: { details: { locks: { status: 'down', detail: expect.stringContaining('the server is gone') } } },
    });
  });

  it('knows a backend by its own name when other tokens stand for it', async () => {
    abstract class LockPort {
      abstract acquire(key: string): Promise<unknown>;
    }
    const app = await application({
      imports: [DistributedLockModule.forRoot(memory()), TerminusModule, LockHealthModule],
      providers: [
        { provide: LockPort, useExisting: LockService },
        { provide: 'made', useFactory: (locks: LockService) => locks, inject: [LockService] },
      ],
    });
    const indicator = app.get(LockHealthIndicator, { strict: false });
    await expect(indicator.check('locks')).resolves.toMatchObject({ locks: { status: 'up' } });
    await expect(indicator.check('locks', 'other')).rejects.toThrow('only [default]');
  });

  it('names the backends there are, when it is asked for another one', async () => {
    const { app } = await open(new Reporting());
    await expect(app.get(LockHealthIndicator, { strict: false }).check('locks', 'other')).rejects.toThrow(
      'there is no backend "other", only [default, ledger]',
    );
  });
});
