import { Inject, Injectable, type Provider, Scope, SetMetadata } from '@nestjs/common';
import { ContextIdFactory, ModuleRef, Reflector } from '@nestjs/core';
import { CurrentLock, currentLock, Locked, type LockHandle, LockKey, LockService } from 'nestjs-distributed-lock';
import { Fenced, fencedManager, Optimistic } from 'nestjs-distributed-lock/typeorm';
import { LockTestingModule, TestLockBackend } from 'nestjs-distributed-lock/testing';
import { context } from './apps.js';
import { Crossing, Deferred } from './crossing.js';
import { FencedShop, sellOne } from './fenced-shop.js';

const shop = new FencedShop();

/** Once with each order of the two decorators. */
class Sale {
  @Locked('lock_sale_:id', { reentrant: true })
  @Fenced('sale_:id')
  async below(id: string): Promise<string> {
    return sellOne(fencedManager(), id);
  }

  @Fenced('sale_:id')
  @Locked('lock_sale_:id')
  async above(id: string): Promise<string> {
    return sellOne(fencedManager(), id);
  }

  @Fenced('sale_:id')
  @SetMetadata('anything', 'between')
  @Locked('lock_sale_:id')
  async fails(id: string): Promise<string> {
    await sellOne(fencedManager(), id);
    throw new Error('changed my mind');
  }
}

@Injectable()
class Singleton extends Sale {}

@Injectable({ scope: Scope.REQUEST })
class PerRequest extends Sale {}

@Injectable({ scope: Scope.TRANSIENT })
class Transient extends Sale {}

@Injectable()
class Consumer {
  constructor(@Inject('MADE_TRANSIENT') readonly made: Sale) {}
}

const MADE: Provider[] = [
  { provide: 'FACTORY', useFactory: async () => new Sale() },
  { provide: 'VALUE', useValue: new Sale() },
  { provide: 'MADE_PER_REQUEST', useFactory: () => new Sale(), scope: Scope.REQUEST },
  { provide: 'MADE_TRANSIENT', useFactory: () => new Sale(), scope: Scope.TRANSIENT },
];

async function resolve(token: typeof Sale | typeof Consumer | string): Promise<Sale> {
  const app = await shop.app(new Crossing(), Singleton, PerRequest, Transient, Consumer, ...MADE);
  const found = await app.get(ModuleRef).resolve<Sale | Consumer>(token, ContextIdFactory.create(), { strict: false });
  return found instanceof Consumer ? found.made : found;
}

describe.each(['below', 'above'] as const)('@Fenced %s @Locked', (order) => {
  it.each([
    ['a singleton', Singleton],
    ['a request-scoped provider', PerRequest],
    ['a transient one', Transient],
    ['one that a factory made', 'FACTORY'],
    ['a value', 'VALUE'],
    ['one that a factory made for a request', 'MADE_PER_REQUEST'],
    ['one that a factory made for its consumer', Consumer],
  ])('fences the writes of %s', async (_, token) => {
    const sale = await resolve(token);
    expect(await sale[order]('1')).toBe('sold 1');
    expect([await shop.stock(1), await shop.fences()]).toEqual([9, ['sale_1']]);
    await shop.overtake('sale_1');
    const stale = { code: 'LOCK_STALE_FENCE', key: 'sale_1', newest: 2n ** 62n };
    await expect(sale[order]('1')).rejects.toMatchObject(stale);
    expect(await shop.stock(1)).toBe(9);
    expect(await sale[order]('2')).toBe('sold 2');
  });

  it('keeps the method’s name, length and metadata', () => {
    expect([Sale.prototype[order].name, Sale.prototype[order].length]).toEqual([order, 1]);
    expect(new Reflector().get('anything', Reflect.get(Sale.prototype, 'fails'))).toBe('between');
  });
});

describe('a @Fenced method', () => {
  it('is rolled back with its fence when it throws, and the caller gets its error', async () => {
    const sale = await resolve(Singleton);
    await expect(sale.fails('1')).rejects.toThrow('changed my mind');
    expect([await shop.stock(1), await shop.fences()]).toEqual([10, []]);
  });

  it('has its lock, its token and one transaction, wherever in its call tree', async () => {
    const seen: unknown[] = [];
    @Injectable()
    class Details {
      @Locked('lock_:order.sku')
      @Fenced('stock:order.sku/:{count}x/:part')
      async buy(order: { sku: string }, count: number, @LockKey('part') _b: bigint, @CurrentLock() lock?: LockHandle) {
        seen.push(order.sku, count);
        const manager = fencedManager();
        await new Promise(setImmediate);
        seen.push(manager === fencedManager(), lock === currentLock(), manager.queryRunner?.isTransactionActive);
      }
    }
    const app = await shop.app(new Crossing(), Details);
    await app.get(Details).buy({ sku: 'a/b' }, 2, 3n);
    expect(seen).toEqual(['a/b', 2, true, true, true]);
    expect(await shop.fences()).toEqual(['stocka%2Fb/2x/3']);
  });

  it('joins the transaction of a caller that has raised the same fence, and is rolled back with it', async () => {
    const managers = new Set<unknown>();
    @Injectable()
    class Bundle extends Singleton {
      @Locked('lock_sale_:id', { reentrant: true })
      @Fenced('sale_:id')
      async twice(id: string, fails: boolean): Promise<void> {
        managers.add(fencedManager());
        await this.inner(id);
        await this.inner(id);
        if (fails) throw new Error('sold out');
      }
      @Fenced('sale_:id')
      @Locked('lock_sale_:id', { reentrant: true })
      async inner(id: string): Promise<void> {
        managers.add(fencedManager());
        await this.below(id);
      }
    }
    const bundle = (await shop.app(new Crossing(), Bundle)).get(Bundle);
    await expect(bundle.twice('1', true)).rejects.toThrow('sold out');
    expect([await shop.stock(1), managers.size]).toEqual([10, 1]);
    await bundle.twice('1', false);
    expect(await shop.stock(1)).toBe(8);
  });

  it('does not share its transaction with other calls at the same time, on the one connection of SQLite', async () => {
    const [inside, leave] = [new Deferred(), new Deferred()];
    @Injectable()
    class Slow extends Singleton {
      @Locked('lock_sale_:id')
      @Fenced('sale_:id')
      async slowly(id: string): Promise<void> {
        await sellOne(fencedManager(), id);
        inside.resolve();
        await leave.promise;
        throw new Error('too slow');
      }
    }
    const slow = (await shop.app(new Crossing(), Slow)).get(Slow);
    const failing = slow.slowly('1');
    await inside.promise;
    const others = ['2', '3', '4'].map((id) => slow.below(id));
    leave.resolve();
    await expect(failing).rejects.toThrow('too slow');
    expect(await Promise.all(others)).toEqual(['sold 2', 'sold 3', 'sold 4']);
    expect([await shop.stock(1), await shop.stock(2), await shop.stock(3), await shop.stock(4)]).toEqual([10, 9, 9, 9]);
  });

  it('does not commit what it wrote when its lock is lost before it ends', async () => {
    @Injectable()
    class Loser {
      constructor(readonly backend: TestLockBackend) {}
      @Locked('lock_sale_:id')
      @Fenced('sale_:id')
      async lose(id: string): Promise<void> {
        await sellOne(fencedManager(), id);
        this.backend.revoke(`lock_sale_${id}`);
      }
    }
    const app = await context({ imports: [LockTestingModule.forRoot()], providers: [shop.provider, Loser] });
    await expect(app.get(Loser).lose('1')).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect([await shop.stock(1), await shop.fences()]).toEqual([10, []]);
  });

  it('is not run, and its lock not taken, when its resource cannot be resolved', async () => {
    const crossing = new Crossing();
    @Injectable()
    class Picky {
      @Locked('lock')
      @Fenced('sale_:order.id')
      async buy(_order: { id?: string }): Promise<void> {
        await sellOne(fencedManager());
      }
    }
    const picky = (await shop.app(crossing, Picky)).get(Picky);
    const refused = { code: 'LOCK_CONFIGURATION', option: 'key' };
    await expect(picky.buy({})).rejects.toMatchObject(refused);
    await expect(picky.buy({ id: '' })).rejects.toMatchObject(refused);
    expect([crossing.keys, await shop.stock()]).toEqual([[], 10]);
  });

  it('is repeated as a whole, in a transaction of its own, by @Optimistic above both', async () => {
    const managers: unknown[] = [];
    @Injectable()
    class Repeated {
      @Optimistic({ retries: 2, baseDelayMs: 0 })
      @Locked('lock_sale_:id')
      @Fenced('sale_:id')
      async buy(id: string): Promise<string> {
        managers.push(fencedManager());
        await sellOne(fencedManager(), id);
        if (managers.length < 3) throw Object.assign(new Error('deadlock'), { code: '40P01' });
        return 'sold';
      }
    }
    expect(await (await shop.app(new Crossing(), Repeated)).get(Repeated).buy('1')).toBe('sold');
    expect([new Set(managers).size, await shop.stock(1)]).toEqual([3, 9]);
  });

  it('is overridden without its fence, unless the overriding method has one', async () => {
    @Injectable()
    class Special extends Sale {
      @Locked('special_:id')
      override async below(id: string): Promise<string> {
        expect(() => fencedManager()).toThrow('this call runs in none');
        return `specially ${await super.below(id)}`;
      }
    }
    const special = (await shop.app(new Crossing(), Special)).get(Special);
    expect(await special.below('3')).toBe('specially sold 3');
  });
});

describe('fencedManager', () => {
  it('belongs into a @Fenced method, and into none that is over', async () => {
    const late = new Deferred();
    let leaked: Promise<unknown> = Promise.resolve();
    @Injectable()
    class Leaky {
      @Locked('lock')
      @Fenced('sale')
      async leak(): Promise<void> {
        leaked = late.promise.then(() => fencedManager());
      }
    }
    const app = await shop.app(new Crossing(), Leaky);
    expect(() => fencedManager()).toThrow('this call runs in none');
    await app.get(LockService).withLock('lock', async () => expect(() => fencedManager()).toThrow('runs in none'));
    await app.get(Leaky).leak();
    late.resolve();
    await expect(leaked).rejects.toThrow('its transaction is over: await all that the method starts');
  });
});
