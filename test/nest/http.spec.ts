import { describe, expect, it } from '@jest/globals';
import {
  applyDecorators,
  Body,
  type CanActivate,
  Controller,
  Get,
  Headers,
  HttpCode,
  Injectable,
  type NestInterceptor,
  Param,
  ParseIntPipe,
  Post,
  Query,
  Req,
  Scope,
  SetMetadata,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ApiOperation, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { CurrentLock, currentLock, Locked, type LockHandle, LockKey } from 'nestjs-distributed-lock';
import { map } from 'rxjs';
import { application, listening, inMemory, serving } from './apps.js';
import { Crossing, together } from './crossing.js';

async function text(address: string, init?: RequestInit): Promise<string> {
  const response = await fetch(address, init);
  return `${response.status} ${await response.text()}`;
}

function post(body: unknown): RequestInit {
  return { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
}

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('@Locked on a controller, %s', (_, adapter) => {
  it('lets one request in at a time, and answers all of them', async () => {
    const crossing = new Crossing(5);
    @Controller('sales')
    class Sales {
      @Locked('lock_sale_:id')
      @Post(':id/purchases')
      @HttpCode(202)
      buy(@Param('id', ParseIntPipe) id: number): Promise<string> {
        return crossing.cross(`sold ${id + 1}`);
      }
    }
    const url = await listening({ imports: [inMemory(crossing)], controllers: [Sales] }, adapter());
    const answers = await together(5, () => text(`${url}/sales/41/purchases`, { method: 'POST' }));
    expect(answers).toEqual(Array(5).fill('202 sold 42'));
    expect(crossing.most).toBe(1);
    expect(crossing.keys).toEqual(Array(5).fill('lock_sale_41'));
  });

  it('takes keys from parameters, arguments and the request', async () => {
    const crossing = new Crossing();
    @Controller('keys/:tenant')
    class Keys {
      @Post('named/:id')
      @Locked('named/:{id}/:{q}')
      named(@Param('id') _a: string, @Query('q') _b: string): Promise<string> {
        return crossing.cross('');
      }

      @Post('body')
      @Locked('body/:sku')
      part(@Body('sku') _sku: string): Promise<string> {
        return crossing.cross('');
      }

      @Post('dto')
      @Locked('dto/:dto.item.sku')
      dto(@Body() dto: { item: { sku: string } }): Promise<string> {
        return crossing.cross(dto.item.sku);
      }

      @Post('only')
      @Locked('only/:count')
      only(@Param('tenant') _tenant: string, @Body() _dto: { count: number }): Promise<string> {
        return crossing.cross('');
      }

      @Post('request/:id')
      @Locked('request/:id/:params.tenant/:query.q/:body.y')
      request(): Promise<string> {
        return crossing.cross('');
      }

      @Post('explicit/:id')
      @Locked('explicit/:id')
      explicit(@Param('id') _id: string, @LockKey('id') @Headers('x-order') _order: string): Promise<string> {
        return crossing.cross('');
      }

      @Post('raw/:id')
      @Locked('raw/:params.id')
      raw(@Req() request: { readonly method: string }): Promise<string> {
        return crossing.cross(request.method);
      }

      @Post('function')
      @Locked((dto: { a: string; b: string }) => [`f:${dto.b}`, `f:${dto.a}`, `f:${dto.b}`])
      function(@Body() dto: { a: string; b: string }): Promise<string> {
        return crossing.cross(dto.a);
      }
    }
    const url = `${await listening({ imports: [inMemory(crossing)], controllers: [Keys] }, adapter())}/keys/acme`;
    await text(`${url}/named/7?q=x`, { method: 'POST' });
    await text(`${url}/body`, post({ sku: 'S-1' }));
    await text(`${url}/dto`, post({ item: { sku: 'S-2' } }));
    await text(`${url}/only`, post({ count: 3 }));
    await text(`${url}/request/9?q=two`, post({ y: true }));
    await text(`${url}/explicit/1`, { method: 'POST', headers: { 'x-order': 'o-1' } });
    await text(`${url}/raw/5`, { method: 'POST' });
    await text(`${url}/function`, post({ a: 'A', b: 'B' }));
    expect(crossing.keys).toEqual([
      'named/7/x',
      'body/S-1',
      'dto/S-2',
      'only/3',
      'request/9/acme/two/true',
      'explicit/o-1',
      'raw/5',
      'f:A',
      'f:B',
    ]);
  });
});

describe('@Locked among other decorators', () => {
  const Transactional = (): MethodDecorator => (_target, name, descriptor: PropertyDescriptor) => {
    const method = descriptor.value;
    const wrapped = async function (this: unknown, ...args: unknown[]): Promise<string> {
      const before = currentLock()?.key ?? 'unlocked';
      return `${String(await Reflect.apply(method, this, args))}, began ${before}`;
    };
    for (const key of Reflect.getOwnMetadataKeys(method)) {
      Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, method), wrapped);
    }
    Object.defineProperty(wrapped, 'name', { value: name });
    descriptor.value = wrapped;
  };

  @Injectable()
  class RoleGuard implements CanActivate {
    constructor(private readonly reflector: Reflector) {}
    canActivate(context: Parameters<CanActivate['canActivate']>[0]): boolean {
      return this.reflector.get('role', context.getHandler()) === 'buyer';
    }
  }

  const shout: NestInterceptor = { intercept: (_, next) => next.handle().pipe(map((value) => `${value}!`)) };
  const crossing = new Crossing();

  @Controller()
  class Orders {
    @Locked('first/:id')
    @Transactional()
    @UseGuards(RoleGuard)
    @UseInterceptors(shout)
    @SetMetadata('role', 'buyer')
    @HttpCode(202)
    @ApiOperation({ summary: 'buys' })
    @Post('first/:id')
    first(@Param('id') id: string): Promise<string> {
      return crossing.cross(id);
    }

    @Post('last/:id')
    @ApiOperation({ summary: 'buys' })
    @HttpCode(202)
    @SetMetadata('role', 'buyer')
    @UseInterceptors(shout)
    @UseGuards(RoleGuard)
    @Locked('last/:id')
    @Transactional()
    last(@Param('id') id: string): Promise<string> {
      return crossing.cross(id);
    }

    @applyDecorators(
      UseGuards(RoleGuard),
      Locked('applied/:id'),
      Transactional(),
      SetMetadata('role', 'buyer'),
      UseInterceptors(shout),
      HttpCode(202),
      ApiOperation({ summary: 'buys' }),
      Post('applied/:id'),
    )
    applied(@Param('id') id: string): Promise<string> {
      return crossing.cross(id);
    }
  }

  it.each(['first', 'last', 'applied'])('works where it stands %s', async (route) => {
    const url = await serving(crossing, Orders);
    // Where the transaction stands inside, the lock came first.
    const began = route === 'applied' ? 'unlocked' : `${route}/5`;
    expect(await text(`${url}/${route}/5`, { method: 'POST' })).toBe(`202 5, began ${began}!`);
    expect(crossing.keys.pop()).toBe(`${route}/5`);
    expect(crossing.keys).toEqual([]);
  });

  it('leaves routes and parameters in the Swagger document', async () => {
    const app = await application({ imports: [inMemory(crossing)], controllers: [Orders] });
    await app.init();
    const { paths } = SwaggerModule.createDocument(app, new DocumentBuilder().build());
    for (const name of ['first', 'last', 'applied']) {
      expect(paths[`/${name}/{id}`]?.post).toMatchObject({
        operationId: `Orders_${name}`,
        summary: 'buys',
        parameters: [{ name: 'id', in: 'path', required: true }],
        responses: { 202: {} },
      });
    }
  });

  it('keeps the name, the length and the metadata of a method', () => {
    class Sales {
      @Locked('sale/:id')
      @Post('sales/:id')
      async buy(id: string, _count: number): Promise<string> {
        return id;
      }
    }
    const buy: Sales['buy'] = Reflect.get(Sales.prototype, 'buy');
    expect([buy.name, buy.length, Reflect.getMetadata('path', buy)]).toEqual(['buy', 2, 'sales/:id']);
  });
});

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
