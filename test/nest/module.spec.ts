import { Inject, Injectable, Module, type Provider } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import {
  DistributedLockModule,
  type DistributedLockOptions,
  type DistributedLockOptionsFactory,
  getLockServiceToken,
  InjectLockService,
  LockBackend,
  Locked,
  LockService,
} from 'nestjs-distributed-lock';
import { memory, MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { closing, context, inMemory, providing } from './apps.js';
import { Crossing, together } from './crossing.js';

@Injectable()
class Sale {
  @Locked('sale')
  async sell(): Promise<string> {
    return 'sold';
  }
}

@Injectable()
class Ledger {
  constructor(
    @InjectLockService('ledger') readonly ledger: LockService,
    readonly locks: LockService,
    @InjectLockService() readonly same: LockService,
  ) {}

  @Locked('entry', { backend: 'ledger' })
  async enter(): Promise<void> {}
}

function named(name: string): LockBackend {
  return new LockBackend(Object.assign(new MemoryLeaseStore(), { name }));
}

const BACKENDS = { default: named('one'), ledger: named('two') };

describe('DistributedLockModule.forRoot', () => {
  it('takes a live backend as it is', async () => {
    const backend = memory()();
    const app = await context({ imports: [DistributedLockModule.forRoot(backend)], providers: [Sale] });
    expect(app.get(LockService).backend).toBe(backend);
    expect(await app.get(Sale).sell()).toBe('sold');
  });

  it('opens a backend of its own in each application that is made of the same module', async () => {
    const imports = [DistributedLockModule.forRoot(memory())];
    const first = await context({ imports, providers: [Sale] });
    const second = await context({ imports, providers: [Sale] });
    expect(await first.get(Sale).sell()).toBe('sold');
    await first.close();
    expect(await second.get(Sale).sell()).toBe('sold');
    await second.close();
    const third = await context({ imports, providers: [Sale] });
    expect(await third.get(Sale).sell()).toBe('sold');
  });

  it('says at once that a live backend was closed with another application', async () => {
    const imports = [DistributedLockModule.forRoot(memory()())];
    await (await context({ imports, providers: [Sale] })).close();
    const again = await context({ imports, providers: [Sale] });
    await expect(again.get(Sale).sell()).rejects.toThrow(/the backend is closed.*give a factory, such as redis/u);
  });

  it('gives each backend a service, and all of them the options', async () => {
    const crossing = new Crossing();
    const options = { backends: BACKENDS, namespace: 'shop', observers: [crossing], defaults: { waitMs: 7 } };
    const app = await context({ imports: [DistributedLockModule.forRoot(options)], providers: [Sale, Ledger] });
    const ledger = app.get(Ledger);
    expect([ledger.ledger.backend.name, ledger.locks.backend.name, ledger.same]).toEqual(['two', 'one', ledger.locks]);
    expect(app.get(getLockServiceToken('ledger'))).toBe(ledger.ledger);
    expect(ledger.ledger.resolve().waitMs).toBe(7);
    const other = await ledger.locks.acquire('entry', { waitMs: 0 });
    await ledger.enter();
    await other.release();
    await app.get(Sale).sell();
    expect(crossing.keys).toEqual(['shop:entry', 'shop:entry', 'shop:sale']);
  });

  it.each([
    [{}, 'needs either a backend'],
    [{ backend: memory(), backends: { default: memory() } }, 'needs either a backend'],
    [{ backend: {} }, 'is no LockBackend'],
    [{ backends: { ledger: memory() } }, 'must be called "default"'],
  ])('refuses %p', (options, why) => {
    expect(() => DistributedLockModule.forRoot(options as DistributedLockOptions)).toThrow(why);
  });

  it('refuses options that no service takes', async () => {
    const module = DistributedLockModule.forRoot({ backend: memory(), namespace: 'a:b' });
    await expect(context({ imports: [module] })).rejects.toThrow('namespace must be letters');
  });
});

describe('DistributedLockModule.forRootAsync', () => {
  @Module({ providers: [{ provide: 'URL', useValue: 'memory:' }], exports: ['URL'] })
  class ConfigModule {}

  @Injectable()
  class Options implements DistributedLockOptionsFactory {
    createLockOptions(): DistributedLockOptions {
      return { backend: named('by class') };
    }
  }

  @Module({ providers: [Options], exports: [Options] })
  class OptionsModule {}

  it('takes what a factory makes of what it injects', async () => {
    const module = DistributedLockModule.forRootAsync({
      imports: [ConfigModule],
      inject: ['URL'],
      useFactory: async (url: string) => named(url),
    });
    const app = await context({ imports: [module], providers: [Sale] });
    expect(app.get(LockService).backend.name).toBe('memory:');
    expect(await app.get(Sale).sell()).toBe('sold');
  });

  it('takes what a class makes, its own or another one', async () => {
    const own = await context({ imports: [DistributedLockModule.forRootAsync({ useClass: Options })] });
    expect(own.get(LockService).backend.name).toBe('by class');
    const module = DistributedLockModule.forRootAsync({ imports: [OptionsModule], useExisting: Options });
    expect((await context({ imports: [module] })).get(LockService).backend.name).toBe('by class');
  });

  it('knows several backends by the names it was told', async () => {
    const module = DistributedLockModule.forRootAsync({
      backends: ['default', 'ledger'],
      useFactory: () => ({ backends: BACKENDS }),
    });
    const app = await context({ imports: [module], providers: [Ledger] });
    expect(app.get(Ledger).ledger.backend.name).toBe('two');
  });

  it.each([[['default', 'ledger', 'more']], [['default']], [['default', 'other']]])(
    'refuses other names: %j',
    async (backends) => {
      const module = DistributedLockModule.forRootAsync({ backends, useFactory: () => ({ backends: BACKENDS }) });
      await expect(context({ imports: [module] })).rejects.toThrow(
        /told the backends \[.*its factory made \[default, ledger\]/,
      );
    },
  );
});

describe('a module in company', () => {
  it('is one of two applications in a process', async () => {
    const [one, two] = [new Crossing(), new Crossing()];
    const [first, second] = [await providing(one, Sale), await providing(two, Sale)];
    const held = await first.get(LockService).acquire('sale');
    expect(await second.get(Sale).sell()).toBe('sold');
    await held.release();
    await second.close();
    expect(await first.get(Sale).sell()).toBe('sold');
    expect([one.keys, two.keys]).toEqual([['sale', 'sale'], ['sale']]);
  });

  it('serves modules that are loaded later', async () => {
    const crossing = new Crossing(3);
    @Injectable()
    class Late {
      @Locked('late_:id')
      sell(id: string): Promise<string> {
        return crossing.cross(id);
      }
    }
    @Module({ providers: [Late] })
    class LateModule {}
    const app = await providing(crossing);
    const loaded = await app.get(LazyModuleLoader).load(() => LateModule);
    await together(3, () => loaded.get(Late).sell('1'));
    expect([crossing.most, crossing.keys]).toEqual([1, Array(3).fill('late_1')]);
  });

  it('lets tests override the service, for every kind of provider', async () => {
    const taken: string[] = [];
    const fake = {
      withLock: async (key: string, work: (lock: object) => unknown): Promise<unknown> => {
        taken.push(key);
        return work({});
      },
    };
    const made: Provider = { provide: 'MADE', useFactory: () => new Sale() };
    const testing = Test.createTestingModule({ imports: [inMemory(new Crossing())], providers: [Sale, made] });
    const app = closing(await testing.overrideProvider(LockService).useValue(fake).compile());
    await app.init();
    await app.get(Sale).sell();
    await app.get<Sale>('MADE').sell();
    expect(taken).toEqual(['sale', 'sale']);
  });

  it('is global once only, because the locks of two would be different ones', async () => {
    const [first, second] = [{ backend: memory() }, { backend: memory(), namespace: 'second' }];
    const twice = [DistributedLockModule.forRoot(first), DistributedLockModule.forRoot(second)];
    await expect(context({ imports: twice })).rejects.toThrow('DistributedLockModule is imported twice');
  });

  it('locks in the service that a class was given, also where another module has it by another name', async () => {
    const own = DistributedLockModule.forRoot({ backend: named('own'), isGlobal: false });
    const keys: string[] = [];
    const observers = [{ acquired: ({ key }: { key: string }) => void keys.push(key) }];
    @Module({
      imports: [DistributedLockModule.forRoot({ backend: named('other'), isGlobal: false, observers })],
      providers: [Sale, { provide: 'ALIAS', useExisting: Sale }],
      exports: ['ALIAS'],
    })
    class Other {}
    const app = await context({ imports: [own, Other], providers: [{ provide: 'SAME', useExisting: 'ALIAS' }] });
    await app.get<Sale>('SAME').sell();
    expect(keys).toEqual(['sale']);
  });

  it('may belong to one module only', async () => {
    @Module({ imports: [DistributedLockModule.forRoot({ backend: memory(), isGlobal: false })], providers: [Sale] })
    class Own {}
    @Injectable()
    class Outside {
      constructor(@Inject(LockService) readonly locks: LockService) {}
    }
    const app = await context({ imports: [Own] });
    expect(await app.get(Sale, { strict: false }).sell()).toBe('sold');
    await expect(context({ imports: [Own], providers: [Outside] })).rejects.toThrow(
      "can't resolve dependencies of the Outside",
    );
  });
});
