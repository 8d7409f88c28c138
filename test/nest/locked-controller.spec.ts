import { Controller, Get, Injectable, Param, Scope } from '@nestjs/common';
import { CurrentLock, currentLock, Locked, type LockHandle } from 'nestjs-distributed-lock';
import { inMemory, listening, serving } from './apps.js';
import { Crossing, together } from './crossing.js';
import { text } from './http-text.js';

describe('a locked controller', () => {
  it('may be request-scoped', async () => {
    const crossing = new Crossing(4);
    let made = 0;
    @Controller({ scope: Scope.REQUEST, path: 'sales' })
    class Sales {
      constructor() {
        made += 1;
      }
      @Locked('lock_sale_:id')
      @Get(':id')
      buy(@Param('id') id: string): Promise<string> {
        return crossing.cross(id);
      }
    }
    const url = await serving(crossing, Sales);
    expect(await together(4, () => text(`${url}/sales/1`))).toEqual(Array(4).fill('200 1'));
    expect([crossing.most, made, crossing.keys[3]]).toEqual([1, 4, 'lock_sale_1']);
  });

  it('gets its lock as a parameter, with and without others', async () => {
    @Controller()
    class Sales {
      @Locked('with/:id')
      @Get('with/:id')
      async with(@Param('id') id: string, @CurrentLock() lock?: LockHandle): Promise<string> {
        return `${id} ${lock?.key} ${lock?.state} ${lock === currentLock()}`;
      }
      @Locked('alone')
      @Get('alone')
      async alone(@CurrentLock() lock?: LockHandle): Promise<string> {
        return `${lock?.key} ${typeof lock?.fencingToken}`;
      }
    }
    const url = await serving(new Crossing(), Sales);
    expect(await text(`${url}/with/3`)).toBe('200 3 with/3 held true');
    expect(await text(`${url}/alone`)).toBe('200 alone bigint');
  });

  it('does not lend its request to what it calls', async () => {
    const crossing = new Crossing();
    @Injectable()
    class Stock {
      @Locked('stock/:id')
      take(_what: { readonly id?: string }): Promise<string> {
        return crossing.cross('taken');
      }
      @Locked('stock/:params.id')
      drop(_what: object): Promise<string> {
        return crossing.cross('dropped');
      }
    }
    @Controller()
    class Sales {
      constructor(private readonly stock: Stock) {}
      @Locked('sale/:id')
      @Get('take/:id')
      async take(@Param('id') _id: string): Promise<string> {
        return this.stock.take({}).catch((error: { code: string }) => error.code);
      }
      @Locked('sale/:id')
      @Get('drop/:id')
      async drop(@Param('id') _id: string): Promise<string> {
        return this.stock.drop({}).catch((error: { code: string }) => error.code);
      }
    }
    const url = await listening({ imports: [inMemory(crossing)], controllers: [Sales], providers: [Stock] });
    expect(await text(`${url}/take/7`)).toBe('200 LOCK_CONFIGURATION');
    expect(await text(`${url}/drop/7`)).toBe('200 LOCK_CONFIGURATION');
    expect(crossing.keys).toEqual(['sale/7', 'sale/7']);
  });
});
