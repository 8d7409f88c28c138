import { Controller, Injectable, type OnModuleInit, Param, Post, type Type } from '@nestjs/common';
import { Locked } from 'nestjs-distributed-lock';
import { Fenced, fencedManager } from 'nestjs-distributed-lock/typeorm';
import { Observable, of } from 'rxjs';
import { context, inMemory, providing } from './apps.js';
import { Crossing } from './crossing.js';
import { FencedShop, sellOne } from './fenced-shop.js';

const shop = new FencedShop();
const crossing = new Crossing();

/** Each with the reason why it can never work. */
const HOPELESS: [string, () => Type, string | RegExp][] = [
  [
    'no @Locked beside it',
    () => {
      class Unlocked {
        @Fenced('sale')
        async sell(): Promise<void> {}
        @Locked('lock')
        async other(): Promise<void> {}
      }
      return Unlocked;
    },
    '@Fenced Unlocked.sell has no @Locked beside it, and never runs without one',
  ],
  [
    'no @Locked beside an inherited one',
    () => {
      class Unlocked {
        @Fenced('sale')
        async sell(): Promise<void> {}
      }
      class Special extends Unlocked {
        @Locked('lock')
        override async sell(): Promise<void> {}
      }
      return Special;
    },
    '@Fenced Unlocked.sell has no @Locked',
  ],
  [
    'a resource that nothing can resolve',
    () => {
      class Sale {
        @Locked('lock')
        @Fenced('sale_:id')
        async sell(_other: string): Promise<void> {}
      }
      return Sale;
    },
    /@Fenced Sale\.sell: :id is a placeholder/,
  ],
  [
    'a lock with several keys',
    () => {
      class Sale {
        @Locked(['a', 'b'])
        @Fenced('sale')
        async sell(): Promise<void> {}
      }
      return Sale;
    },
    '@Fenced Sale.sell needs a @Locked with one key',
  ],
  [
    'a method that returns an Observable',
    () => {
      class Sale {
        // @ts-expect-error no promise
        @Fenced('sale')
        @Locked('lock')
        sell(): Observable<number> {
          return of(1);
        }
      }
      return Sale;
    },
    '@Fenced Sale.sell needs a method that returns a promise',
  ],
  [
    'a data source that nobody provides',
    () => {
      class Sale {
        @Locked('lock')
        @Fenced('sale', { dataSource: 'ledgerDataSource' })
        async sell(): Promise<void> {}
      }
      return Sale;
    },
    /DataSource of @Fenced Sale\.sell: import TypeOrmModule/,
  ],
];

describe('what stops an application', () => {
  it.each(HOPELESS)('%s, in a provider', async (_, make, why) => {
    const Provided = make();
    Injectable()(Provided);
    await expect(shop.app(crossing, Provided)).rejects.toThrow(why);
  });

  it.each(HOPELESS)('%s, in an instance that a factory makes', async (_, make, why) => {
    const Made = make();
    await expect(shop.app(crossing, { provide: 'MADE', useFactory: () => new Made() })).rejects.toThrow(why);
  });

  it('a placeholder that nothing can resolve, in a controller', async () => {
    @Controller('sale')
    class Sales {
      @Locked('lock')
      @Fenced('sale_:sku')
      @Post(':id')
      async buy(@Param('id') _id: string): Promise<void> {}
    }
    const started = context({ imports: [inMemory(crossing)], providers: [shop.provider], controllers: [Sales] });
    await expect(started).rejects.toThrow(/@Fenced Sales\.buy: :sku is a placeholder/);
  });
});

describe('a @Fenced method that nobody looked at before', () => {
  class Unlocked {
    ran = 0;
    @Fenced('sale')
    async sell(): Promise<void> {
      this.ran += 1;
    }
  }

  it('never runs without a lock, with Nest or without', async () => {
    const alone = new Unlocked();
    const refused = { code: 'LOCK_CONFIGURATION', message: expect.stringContaining('no @Locked beside it') };
    await expect(alone.sell()).rejects.toMatchObject(refused);
    const app = await context({ providers: [Unlocked, shop.provider] });
    await expect(app.get(Unlocked).sell()).rejects.toMatchObject(refused);
    expect([alone.ran, app.get(Unlocked).ran]).toEqual([0, 0]);
  });

  it('never runs with the several keys of a function', async () => {
    @Injectable()
    class Sale {
      ran = 0;
      @Locked((...keys: string[]) => keys)
      @Fenced('sale')
      async several(..._keys: string[]): Promise<void> {
        this.ran += 1;
      }
    }
    const sale = (await shop.app(crossing, Sale)).get(Sale);
    await expect(sale.several('a', 'b')).rejects.toThrow('@Fenced Sale.several needs a @Locked with one key');
    expect(sale.ran).toBe(0);
    await sale.several('a', 'a');
    expect(sale.ran).toBe(1);
  });

  it('never runs with something else than a data source, which stops an application that starts', async () => {
    let ran = 0;
    @Injectable()
    class Sale {
      @Locked('lock')
      @Fenced('sale', { dataSource: 'FAKE' })
      async sell(): Promise<void> {
        ran += 1;
      }
    }
    const why = 'what @Fenced Sale.sell was given as dataSource is no DataSource';
    const fake = { provide: 'FAKE', useValue: { manager: {} } };
    await expect(shop.app(crossing, Sale, fake)).rejects.toThrow(why);
    @Injectable()
    class Early implements OnModuleInit {
      constructor(private readonly sale: Sale) {}
      async onModuleInit(): Promise<void> {
        await this.sale.sell();
      }
    }
    await expect(shop.app(crossing, Sale, fake, Early)).rejects.toThrow(why);
    expect(ran).toBe(0);
  });

  it('never runs on an instance that nobody provided', async () => {
    class Sale {
      @Locked('lock')
      @Fenced('sale')
      async sell(): Promise<string> {
        return sellOne(fencedManager());
      }
    }
    await providing(crossing);
    await expect(new Sale().sell()).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'backend' });
    expect(await shop.stock()).toBe(10);
  });

  it('writes into the data source that it names', async () => {
    @Injectable()
    class Sale {
      @Locked('lock')
      @Fenced('sale', { dataSource: 'ledgerDataSource' })
      async sell(): Promise<string> {
        return sellOne(fencedManager());
      }
    }
    const named = { provide: 'ledgerDataSource', useFactory: () => shop.dataSource };
    const app = await context({ imports: [inMemory(crossing)], providers: [Sale, named] });
    expect(await app.get(Sale).sell()).toBe('sold 1');
    expect(await shop.stock()).toBe(9);
  });
});
