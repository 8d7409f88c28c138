import { Controller, Get, Module, type Provider, Scope } from '@nestjs/common';
import { ContextIdFactory, ModuleRef } from '@nestjs/core';
import { DistributedLockModule, Leads, Locked, type LockHandle, LockService } from 'nestjs-distributed-lock';
import { LockBackend } from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { application, context, listen } from './apps.js';
import { Crossing } from './crossing.js';

class Stock {
  @Locked('stock')
  async reserve(): Promise<void> {}
}

class Books {
  @Locked('books', { backend: 'ledger' })
  async enter(): Promise<void> {}
}

class Elected {
  static readonly terms: LockHandle[] = [];
  @Leads('elected')
  async lead(term: LockHandle): Promise<void> {
    Elected.terms.push(term);
    await new Promise((resolve) => term.signal.addEventListener('abort', resolve));
  }
}

function named(name: string): LockBackend {
  return new LockBackend(Object.assign(new MemoryLeaseStore(), { name }));
}

describe('an application with a local import of DistributedLockModule beside the global one', () => {
  function makeImports(featureProviders: Provider[]) {
    const rootCrossing = new Crossing();
    const featureCrossing = new Crossing();
    const rootImport = DistributedLockModule.forRoot({
      backends: { default: named('root'), ledger: named('ledger') },
      observers: [rootCrossing],
      exceptionFilter: { LOCK_TIMEOUT: { status: 409 } },
    });
    const featureImport = DistributedLockModule.forRoot({
      backend: named('feature'),
      observers: [featureCrossing],
      isGlobal: false,
    });
    @Module({ imports: [featureImport], providers: featureProviders })
    class Feature {}
    return { imports: [rootImport, Feature], rootCrossing, featureCrossing };
  }

  it.each([
    ['a factory', { provide: 'STOCK', useFactory: () => new Stock() }],
    ['a value', { provide: 'STOCK', useValue: new Stock() }],
  ])('locks what %s of the root module made in the global backend', async (_, provider) => {
    const { imports, rootCrossing, featureCrossing } = makeImports([]);
    const app = await context({ imports, providers: [provider] });
    await app.get<Stock>('STOCK').reserve();
    expect([rootCrossing.keys, featureCrossing.keys]).toEqual([['stock'], []]);
  });

  it('locks what a factory of the root module makes for a request in the global backend', async () => {
    const { imports, rootCrossing, featureCrossing } = makeImports([]);
    const provider = { provide: 'STOCK', useFactory: () => new Stock(), scope: Scope.REQUEST };
    const app = await context({ imports, providers: [provider] });
    const stock = await app.get(ModuleRef).resolve<Stock>('STOCK', ContextIdFactory.create(), { strict: false });
    await stock.reserve();
    expect([rootCrossing.keys, featureCrossing.keys]).toEqual([['stock'], []]);
  });

  it('locks what a factory of the feature made in the local backend, and in the global one by a name that only it has', async () => {
    const { imports, rootCrossing, featureCrossing } = makeImports([
      { provide: 'STOCK', useFactory: () => new Stock() },
      { provide: 'BOOKS', useFactory: () => new Books() },
    ]);
    const app = await context({ imports });
    await app.get<Stock>('STOCK', { strict: false }).reserve();
    await app.get<Books>('BOOKS', { strict: false }).enter();
    expect([rootCrossing.keys, featureCrossing.keys]).toEqual([['books'], ['stock']]);
  });

  it('has what a factory of the root module made lead in the global backend', async () => {
    const { imports, rootCrossing, featureCrossing } = makeImports([]);
    await context({ imports, providers: [{ provide: 'ELECTED', useFactory: () => new Elected() }] });
    await eventually(() => rootCrossing.keys.length + featureCrossing.keys.length > 0);
    expect([rootCrossing.keys, featureCrossing.keys]).toEqual([['elected'], []]);
  });

  it('answers a busy key as the global import says', async () => {
    @Controller()
    class Sales {
      constructor(readonly locks: LockService) {}
      @Get()
      @Locked('sale', { waitMs: 0 })
      async sell(): Promise<void> {}
    }
    const { imports } = makeImports([]);
    const app = await application({ imports, controllers: [Sales] });
    const held = await app.get(Sales).locks.acquire('sale');
    expect((await fetch(await listen(app))).status).toBe(409);
    await held.release();
  });
});
