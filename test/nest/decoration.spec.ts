import { Body, Controller, Get, Injectable, Param, Post, Query, type Type } from '@nestjs/common';
import { CurrentLock, DistributedLockModule, Locked, type LockedOptions, LockKey } from 'nestjs-distributed-lock';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { context, inMemory, providing } from './apps.js';
import { Crossing } from './crossing.js';

const crossing = new Crossing();

function decorate(key: string | [string], options?: LockedOptions): () => void {
  return () => {
    class Sale {
      @Locked(key, options)
      async sell(_id: string): Promise<void> {}
    }
    return new Sale();
  };
}

async function bootstrap(controller: Type): Promise<unknown> {
  return context({ imports: [inMemory(crossing)], controllers: [controller] });
}

describe('what @Locked refuses when a class is made', () => {
  it('a static method, a property, an accessor', () => {
    const locked = Locked('key') as MethodDecorator & PropertyDecorator;
    expect(() => {
      class Sale {
        readonly name = 'sale';
        @locked
        static async sell(): Promise<void> {}
      }
      return Sale;
    }).toThrow('@Locked belongs on a method of instances');
    expect(() => {
      class Sale {
        @locked
        sell = async (): Promise<void> => undefined;
      }
      return Sale;
    }).toThrow('Sale.sell is not');
    expect(() => {
      class Sale {
        @locked
        get sell(): string {
          return '';
        }
      }
      return Sale;
    }).toThrow('Sale.sell is not');
  });

  it('two locks on one method', () => {
    expect(() => {
      class Sale {
        @Locked('a')
        @Locked('b')
        async sell(): Promise<void> {}
      }
      return Sale;
    }).toThrow('Sale.sell has two @Locked; give one of them both keys, in an array');
  });

  it.each([
    ['', 'must not be empty'],
    [[], 'no key at all'],
    ['a:{x y}', ':{x y} names no argument'],
    [':id:other', 'need something between'],
    [':id%2F', 'cannot follow a placeholder'],
    ['x'.repeat(5_000), 'may have 4096 bytes'],
    ['\ud800', 'lone surrogate'],
  ])('the key %j', (key, why) => {
    expect(decorate(key as string)).toThrow(why);
  });

  it.each([
    [{ waitMs: -1 }, 'waitMs must be'],
    [{ ttl: 5 }, 'ttl is no acquire option'],
    [{ onBusy: 'ignore' }, "onBusy of Sale.sell must be 'throw', 'skip' or a function"],
  ])('the options %j', (options, why) => {
    expect(decorate('key', options as LockedOptions)).toThrow(why);
  });

  it('parameter decorators on a constructor, and two of one name', () => {
    expect(() => {
      class Sale {
        constructor(@LockKey('id') readonly id: string) {}
      }
      return Sale;
    }).toThrow("@LockKey('id') belongs to a method's parameter");
    expect(() => {
      class Sale {
        constructor(@CurrentLock() readonly id: string) {}
      }
      return Sale;
    }).toThrow('@CurrentLock() belongs to');
    expect(() => {
      class Sale {
        async sell(@LockKey('id') _a: string, @LockKey('id') _b: string): Promise<void> {}
      }
      return Sale;
    }).toThrow("sell has two @LockKey('id')");
  });
});

describe('what stops an application', () => {
  it('a placeholder that nothing can resolve, in a controller', async () => {
    @Controller('sale')
    class Sales {
      @Locked('lock:sale')
      @Post(':id')
      async buy(@Param('id') _id: string): Promise<void> {}
    }
    await expect(bootstrap(Sales)).rejects.toThrow(/:sale is a placeholder.*For a plain colon write "\\\\:sale"/);
  });

  it('a placeholder that nothing can resolve, in a provider', async () => {
    @Injectable()
    class Sale {
      @Locked('lock_:params.id')
      async sell(_id: string): Promise<void> {}
    }
    await expect(providing(crossing, Sale)).rejects.toThrow(/Sale\.sell.*:params\.id is a placeholder/);
    const made = { provide: 'MADE', useFactory: () => new Sale() };
    await expect(providing(crossing, made)).rejects.toThrow(':params.id is a placeholder');
  });

  it('a name that two parameters have, until one of them is meant', async () => {
    @Controller()
    class Ambiguous {
      @Locked('lock_:id')
      @Get()
      async buy(@Param('id') _a: string, @Query('id') _b: string): Promise<void> {}
    }
    await expect(bootstrap(Ambiguous)).rejects.toThrow('two parameters are called "id"');
    @Controller()
    class Explicit {
      @Locked('lock_:id')
      @Get()
      async buy(@LockKey('id') @Param('id') _a: string, @Query('id') _b: string): Promise<void> {}
    }
    await expect(bootstrap(Explicit)).resolves.toBeDefined();
  });

  it('a backend that is not there', async () => {
    @Injectable()
    class Sale {
      @Locked('key', { backend: 'ledger' })
      async sell(): Promise<void> {}
    }
    await expect(providing(crossing, Sale)).rejects.toThrow(
      /no backend is called ledger, add it: .*backends: \{ ledger/,
    );
    const made = { provide: 'MADE', useFactory: () => new Sale() };
    await expect(providing(crossing, made)).rejects.toThrow(/Sale\.sell.*"ledger"/);
  });

  it('a TTL that its backend cannot keep', async () => {
    @Injectable()
    class Sale {
      @Locked('key', { ttlMs: 500 })
      async sell(): Promise<void> {}
    }
    const backend = Object.assign(new MemoryLeaseStore(), { traits: { ttlLimits: { minMs: 2_000, maxMs: 60_000 } } });
    const imports = [DistributedLockModule.forRoot(backend)];
    const made = { provide: 'MADE', useFactory: () => new Sale() };
    const refusal = 'ttlMs must be from 2000 to 60000 with memory; it was 500';
    await expect(context({ imports, providers: [Sale] })).rejects.toThrow(refusal);
    await expect(context({ imports, providers: [made] })).rejects.toThrow(refusal);
  });

  it('not a placeholder that may be resolved when the method is called', async () => {
    @Controller(':tenant/sales')
    class Sales {
      @Locked(['a/:sku', 'b/:tenant', 'c/:id', 'd/:body.sku'])
      @Post(':id')
      async dto(@Body() _dto: { sku: string }): Promise<void> {}
      @Locked('e/:anything')
      async rest(..._all: string[]): Promise<void> {}
    }
    await expect(bootstrap(Sales)).resolves.toBeDefined();
  });
});
