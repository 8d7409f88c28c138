import { Inject, Injectable, type Provider, Scope } from '@nestjs/common';
import { ContextIdFactory, ModuleRef } from '@nestjs/core';
import { CurrentLock, currentLock, Locked, type LockHandle, LockKey } from 'nestjs-distributed-lock';
import { Optimistic } from 'nestjs-distributed-lock/typeorm';
import { context, inMemory, providing, root } from './apps.js';
import { Crossing, together } from './crossing.js';

let crossing = new Crossing();

abstract class Sale {
  protected abstract readonly name: string;

  @Locked('sale_:id')
  sell(id: string): Promise<string> {
    return crossing.cross(`${this.name} sells ${id}`);
  }

  async sellAll(...ids: string[]): Promise<string[]> {
    return Promise.all(ids.map((id) => this.sell(id)));
  }
}

@Injectable()
class Singleton extends Sale {
  protected readonly name = 'singleton';
}

@Injectable({ scope: Scope.REQUEST })
class PerRequest extends Sale {
  protected readonly name = 'per request';
}

@Injectable({ scope: Scope.TRANSIENT })
class Transient extends Sale {
  protected readonly name = 'transient';
}

class Made extends Sale {
  protected readonly name = 'made';
}

@Injectable()
class Consumer {
  constructor(
    readonly transient: Transient,
    @Inject('MADE_TRANSIENT') readonly made: Sale,
  ) {}
}

const MADE: Provider[] = [
  { provide: 'FACTORY', useFactory: () => new Made() },
  { provide: 'ASYNC_FACTORY', useFactory: async () => new Made() },
  { provide: 'VALUE', useValue: new Made() },
  { provide: 'ALIAS', useExisting: 'FACTORY' },
  { provide: 'CLASS', useClass: Singleton },
  { provide: 'MADE_PER_REQUEST', useFactory: () => new Made(), scope: Scope.REQUEST },
  { provide: 'MADE_TRANSIENT', useFactory: () => new Made(), scope: Scope.TRANSIENT },
  { provide: 'ODD', useValue: null },
  { provide: 'BARE', useValue: Object.create(null) },
];

async function resolve(token: string | typeof Sale | typeof Consumer): Promise<Sale> {
  const app = await providing(crossing, Singleton, PerRequest, Transient, Consumer, ...MADE);
  const moduleRef = app.get(ModuleRef);
  if (token === Consumer) return app.get(Consumer).transient;
  if (token === 'MADE_TRANSIENT') return app.get(Consumer).made;
  return moduleRef.resolve<Sale>(token, ContextIdFactory.create(), { strict: false });
}

describe('@Locked on a provider', () => {
  it.each([
    ['a singleton', Singleton],
    ['a request-scoped one', PerRequest],
    ['a transient one', Transient],
    ['a transient one of a singleton', Consumer],
    ['one that a factory made', 'FACTORY'],
    ['one that an asynchronous factory made', 'ASYNC_FACTORY'],
    ['a value', 'VALUE'],
    ['an alias', 'ALIAS'],
    ['a class under another token', 'CLASS'],
    ['one that a factory made for a request', 'MADE_PER_REQUEST'],
    ['one that a factory made for its consumer', 'MADE_TRANSIENT'],
  ])('locks %s', async (_, token) => {
    crossing = new Crossing(4);
    const sale = await resolve(token);
    const answers = await together(4, () => sale.sell('42'));
    expect(new Set(answers)).toEqual(new Set([`${Reflect.get(sale, 'name')} sells 42`]));
    expect(crossing.most).toBe(1);
    expect(crossing.keys).toEqual(Array(4).fill('sale_42'));
  });

  it('locks instances of one class against each other, and different keys not', async () => {
    crossing = new Crossing(3);
    const app = await providing(crossing, Singleton, { provide: 'FACTORY', useFactory: () => new Made() });
    const [one, other] = [app.get(Singleton), app.get<Sale>('FACTORY')];
    await Promise.all([one.sell('1'), other.sell('1'), one.sell('2')]);
    expect(crossing.most).toBe(2);
    expect(crossing.keys.toSorted()).toEqual(['sale_1', 'sale_1', 'sale_2']);
  });

  it('locks calls from inside the class', async () => {
    crossing = new Crossing(3);
    const app = await providing(crossing, Singleton);
    await app.get(Singleton).sellAll('9', '9', '9');
    expect([crossing.most, crossing.keys]).toEqual([1, ['sale_9', 'sale_9', 'sale_9']]);
  });

  it('locks without the explorer: before the application is initialised', async () => {
    crossing = new Crossing(1);
    let early = '';
    @Injectable()
    class Early extends Sale {
      protected readonly name = 'early';
      async onModuleInit(): Promise<void> {
        early = await this.sell('0');
      }
    }
    await providing(crossing, Early);
    expect([early, crossing.keys]).toEqual(['early sells 0', ['sale_0']]);
  });

  it('locks an overriding method by its own key, and the overridden one by its too', async () => {
    crossing = new Crossing();
    @Injectable()
    class Special extends Singleton {
      @Locked('special_:id')
      override async sell(id: string): Promise<string> {
        return `specially ${await super.sell(id)}`;
      }
    }
    const app = await providing(crossing, Special);
    expect(await app.get(Special).sell('5')).toBe('specially singleton sells 5');
    expect(crossing.keys).toEqual(['special_5', 'sale_5']);
  });

  it('enters again where the same call tree has the key and both methods say so', async () => {
    crossing = new Crossing();
    @Injectable()
    class Bundle extends Singleton {
      @Locked('sale_:id', { reentrant: true })
      sellTwice(id: string): Promise<string[]> {
        return this.sellAll(id, id);
      }
      @Locked('sale_:id', { reentrant: true })
      override sell(id: string): Promise<string> {
        return crossing.cross(`again ${id}`);
      }
    }
    const app = await providing(crossing, Bundle);
    await app.get(Bundle).sellTwice('6');
    expect(crossing.keys).toEqual(['sale_6', 'sale_6', 'sale_6']);
    expect(crossing.releases).toBe(1);
  });

  it('resolves every kind of name', async () => {
    crossing = new Crossing();
    @Injectable()
    class Names {
      @Locked('a/:order.lines.0.sku/:count')
      path(order: { lines: { sku: string }[] }, count: number): Promise<string> {
        return crossing.cross(`${order.lines.length} ${count}`);
      }
      @Locked('b/:sku/:count')
      destructured({ sku: _sku }: { sku: string }, _unused = ')', count = 1): Promise<string> {
        return crossing.cross(String(count));
      }
      @Locked('c/:order/:part.id')
      explicit(@LockKey('part') a: { id: bigint }, @LockKey('order') b: boolean): Promise<string> {
        return crossing.cross(`${a.id} ${b}`);
      }
      @Locked('d/:id')
      withLock(_order: { id: number }, @CurrentLock() lock?: LockHandle): Promise<string> {
        return crossing.cross(`${lock?.key} ${lock === currentLock()}`);
      }
      @Locked(function (this: Names, id: string) {
        return this.prefix + id;
      })
      self(_id: string): Promise<string> {
        return crossing.cross('');
      }
      readonly prefix = 'e/';
      @Locked(String.raw`f\:1:2::id`)
      literal(id: string): Promise<string> {
        return crossing.cross(id);
      }
      @Locked('g/:id')
      @Optimistic()
      wrapped(id: string): Promise<string> {
        return crossing.cross(id);
      }
    }
    const app = await providing(crossing, Names);
    const names = app.get(Names);
    await names.path({ lines: [{ sku: 'S' }] }, 2);
    await names.destructured({ sku: 'D' }, undefined, 7);
    await names.explicit({ id: 8n }, false);
    expect(await names.withLock({ id: 9 })).toBe('d/9 true');
    expect(await names.withLock({ id: 9 }, {} as LockHandle)).toBe('d/9 true');
    await names.self('x');
    await names.literal('y');
    await names.wrapped('z');
    expect(crossing.keys).toEqual(['a/S/2', 'b/D/7', 'c/false/8', 'd/9', 'd/9', 'e/x', 'f:1:2:y', 'g/z']);
  });
});

describe('@Locked without a service', () => {
  it('never runs the method of an instance that nobody provided', async () => {
    crossing = new Crossing();
    await providing(crossing, Singleton);
    await expect(new Made().sell('1')).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'backend' });
    expect(crossing.most).toBe(0);
  });

  it('never runs a method that lost its instance', async () => {
    crossing = new Crossing();
    const app = await providing(crossing, Singleton);
    const sell: Sale['sell'] = Reflect.get(app.get(Singleton), 'sell');
    await expect(Reflect.apply(sell, undefined, ['1'])).rejects.toThrow('without its instance');
    expect(crossing.most).toBe(0);
  });

  it('stops an application without the module, and says what is missing', async () => {
    await expect(context({ providers: [Singleton] })).rejects.toThrow(
      /LockService of @Locked Sale\.sell: import DistributedLockModule\.forRoot\(backend\) in the root module/,
    );
  });

  it('lets an application start whose factory hides the missing module, and refuses the call', async () => {
    crossing = new Crossing();
    const app = await context({ providers: [{ provide: 'FACTORY', useFactory: () => new Made() }] });
    await expect(app.get<Sale>('FACTORY').sell('1')).rejects.toThrow('DistributedLockModule is missing');
    expect(crossing.most).toBe(0);
  });

  it('stops an application whose service is not visible', async () => {
    const module = { ...inMemory(crossing), global: false };
    const feature = root({ providers: [Singleton] });
    await expect(context({ imports: [module, feature] })).rejects.toThrow('LockService of @Locked Sale.sell');
  });
});
