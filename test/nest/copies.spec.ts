import { jest } from '@jest/globals';
import * as common from '@nestjs/common';
import { Controller, Get, Inject, Injectable, Module, Scope } from '@nestjs/common';
import * as core from '@nestjs/core';
import { DistributedLockModule, LockService, LockTimeoutError } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { application, context, listen } from './apps.js';
import { KeptLog } from './kept-log.js';

type Package = typeof import('nestjs-distributed-lock');

/** Loads the package once more, as it is in a library's own installation. There is one Nest. */
async function secondCopy(): Promise<Package> {
  jest.resetModules();
  jest.unstable_mockModule('@nestjs/common', () => common);
  jest.unstable_mockModule('@nestjs/core', () => core);
  return import('nestjs-distributed-lock');
}

/** What a library exports that was compiled against its own copy. */
function library({ currentLock, InjectLockService, Leads, Locked, LockKey, LockService: Service }: Package) {
  @Injectable()
  class Sales {
    readonly events: string[] = [];

    constructor(
      @Inject(Service) readonly locks: LockService,
      @InjectLockService('ledger') readonly ledger: LockService,
    ) {}

    @Locked('sale_:id', { waitMs: 0, reentrant: true })
    async buy(@LockKey('id') id: string): Promise<string | undefined> {
      return currentLock()?.key ?? `${id} has no lock`;
    }

    @Locked('sale_:id', { onBusy: 'skip', reentrant: true })
    async skip(@LockKey('id') id: string): Promise<string | undefined> {
      return this.buy(id);
    }

    @Locked('entry', { backend: 'ledger' })
    async enter(): Promise<string | undefined> {
      return currentLock()?.key;
    }

    @Leads({ key: 'office', backend: 'ledger' })
    async lead(): Promise<void> {
      this.events.push('leads');
    }
  }

  @Controller()
  class SalesController {
    constructor(@Inject(Sales) private readonly sales: Sales) {}

    @Get('buy/:id')
    @Locked('http_:params.id', { waitMs: 0 })
    async buy(): Promise<string> {
      return 'bought';
    }

    @Get('service/:id')
    service(): Promise<string | undefined> {
      return this.sales.buy('1');
    }
  }
  return { Sales, SalesController };
}

describe('two copies of the package in one process', () => {
  it('share services where the second one is loaded after the module was written down', async () => {
    const module = DistributedLockModule.forRoot({ backends: { default: memory(), ledger: memory() } });
    const theirs = await secondCopy();
    const { Sales } = library(theirs);
    const app = await context({ imports: [module], providers: [Sales] });
    expect(app.get(Sales).locks).toBe(app.get(LockService));
    expect(app.get(theirs.LockService)).toBe(app.get(LockService));
  });

  it('share services, leaders, re-entry and what they know of errors', async () => {
    const theirs = await secondCopy();
    expect(theirs.LockService).not.toBe(LockService);
    const { Sales } = library(theirs);
    const backends = { default: memory(), ledger: memory() };
    const app = await context({ imports: [DistributedLockModule.forRoot({ backends })], providers: [Sales] });
    const sales = app.get(Sales);
    const locks = app.get(LockService);
    expect(sales.locks).toBe(locks);
    expect(app.get(theirs.LockService)).toBe(locks);
    await expect(sales.buy('1')).resolves.toBe('sale_1');
    await expect(sales.skip('1')).resolves.toBe('sale_1');
    await expect(sales.enter()).resolves.toBe('entry');
    await eventually(() => expect(sales.events).toContain('leads'));
    await using _held = await locks.acquire('sale_1');
    await expect(sales.skip('1')).resolves.toBeUndefined();
    const error: unknown = await sales.buy('1').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(error).not.toBeInstanceOf(theirs.LockTimeoutError);
    expect(theirs.isLockError(error, 'LOCK_TIMEOUT')).toBe(true);
    expect(theirs.isLockError(error, 'LOCK_LOST')).toBe(false);
    expect(theirs.isLockError(Object.assign(new Error('of mysql'), { code: 'LOCK_TIMEOUT' }))).toBe(false);
  });

  it('answer requests alike, and the start says where they are', async () => {
    const { Sales, SalesController } = library(await secondCopy());
    const log = new KeptLog();
    const imports = [DistributedLockModule.forRoot({ backends: { default: memory(), ledger: memory() } })];
    const metadata = { imports, controllers: [SalesController], providers: [Sales] };
    const app = await application(metadata, { logger: log });
    const url = await listen(app);
    expect(log.lines).toEqual([expect.stringMatching(/loaded \d times, from .*nest\/copies.* and .*nest\/copies/u)]);
    const statusOf = async (path: string): Promise<number> => (await fetch(`${url}/${path}`)).status;
    await using _held = await app.get(LockService).acquire('sale_1');
    await using _alsoHeld = await app.get(LockService).acquire('http_1');
    expect([await statusOf('service/1'), await statusOf('buy/1'), await statusOf('buy/2')]).toEqual([423, 423, 200]);
  });

  it('are refused where each has its module', async () => {
    const theirs = await secondCopy();
    const imports = [DistributedLockModule.forRoot(memory()), theirs.DistributedLockModule.forRoot(memory())];
    await expect(context({ imports })).rejects.toThrow('DistributedLockModule is imported twice');
  });
});

describe('a lock service that is made for each request', () => {
  it('stops the start, also where nothing is locked', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Tenant {}
    @Module({ providers: [Tenant], exports: [Tenant] })
    class Tenants {}
    const options = { imports: [Tenants], inject: [Tenant], useFactory: () => memory() };
    const imports = [DistributedLockModule.forRootAsync(options)];
    await expect(context({ imports })).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'inject' });
  });
});
