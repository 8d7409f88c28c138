import { Controller, Get, Injectable, Param, type PipeTransform } from '@nestjs/common';
import { Locked, type LockedDecorator } from 'nestjs-distributed-lock';
import { inMemory, listening, providing } from './apps.js';
import { Crossing } from './crossing.js';

/** As the one of MongoDB. */
class ObjectId {
  constructor(private readonly hex: string) {}

  toJSON(): string {
    return this.hex;
  }
}

class Sku {
  constructor(readonly code: string) {}
}

class ToObjectId implements PipeTransform<string> {
  transform(hex: string): unknown {
    return new ObjectId(hex);
  }
}

class ToSku implements PipeTransform<string> {
  transform(code: string): unknown {
    return new Sku(code);
  }
}

describe('the value of a placeholder', () => {
  it('is the text that its class has for JSON', async () => {
    const crossing = new Crossing();
    @Injectable()
    class Sales {
      @Locked('sale_:id')
      async buy(id: ObjectId): Promise<unknown> {
        return id;
      }

      @Locked('day_:day')
      async close(day: Date): Promise<unknown> {
        return day;
      }
    }
    const sales = (await providing(crossing, Sales)).get(Sales);
    await sales.buy(new ObjectId('64b0'));
    await sales.close(new Date(Date.UTC(2026, 0, 2, 3, 4, 5, 6)));
    expect(crossing.keys).toEqual(['sale_64b0', 'day_2026-01-02T03%3A04%3A05.006Z']);
    await expect(sales.close(new Date(Number.NaN))).rejects.toThrow(':day in "day_:day" (Sales.close) is a Date');
  });

  it('of a class without one stops the start', async () => {
    @Injectable()
    class Sales {
      @Locked('sale_:sku')
      async buy(sku: Sku): Promise<unknown> {
        return sku;
      }
    }
    const refusal = 'Sales.buy: :sku is a Sku, which names no lock. Name one of its properties, as in :sku.id';
    await expect(providing(new Crossing(), Sales)).rejects.toThrow(refusal);
    @Injectable()
    class Several {
      @Locked('sale_:skus')
      async buy(skus: string[]): Promise<unknown> {
        return skus;
      }
    }
    await expect(providing(new Crossing(), Several)).rejects.toThrow(':skus is an array');
  });

  it('is the fault of the application where a pipe made it, and of the client where it is missing', async () => {
    const crossing = new Crossing();
    @Controller()
    class Sales {
      @Get('id/:id')
      @Locked('sale_:id')
      async id(@Param('id', ToObjectId) id: unknown): Promise<string> {
        return String(id);
      }

      @Get('sku/:sku')
      @Locked('sale_:sku')
      async sku(@Param('sku', ToSku) sku: unknown): Promise<string> {
        return String(sku);
      }

      @Get('query')
      @Locked('sale_:query.id')
      async query(): Promise<string> {
        return 'query';
      }
    }
    const url = await listening({ imports: [inMemory(crossing)], controllers: [Sales] });
    const statusOf = async (path: string): Promise<number> => (await fetch(`${url}/${path}`)).status;
    expect(await Promise.all(['id/64b0', 'sku/a', 'query', 'query?id=1&id=2'].map(statusOf))).toEqual([
      200, 500, 400, 400,
    ]);
    expect(crossing.keys).toEqual(['sale_64b0']);
  });
});

describe('decorators of the new standard', () => {
  it('are told from those that Nest knows', () => {
    const locked = Locked('key') as LockedDecorator & ((method: unknown, context: unknown) => void);
    expect(() => Reflect.apply(locked, undefined, [() => undefined, { kind: 'method', name: 'buy' }])).toThrow(
      'set "experimentalDecorators"',
    );
  });
});
