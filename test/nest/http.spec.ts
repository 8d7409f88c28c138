import {
  applyDecorators,
  Body,
  type CanActivate,
  Controller,
  Headers,
  HttpCode,
  Injectable,
  type NestInterceptor,
  Param,
  ParseIntPipe,
  Post,
  Query,
  Req,
  SetMetadata,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ApiOperation, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { currentLock, Locked, LockKey } from 'nestjs-distributed-lock';
import { map } from 'rxjs';
import { application, listening, inMemory, serving } from './apps.js';
import { Crossing, together } from './crossing.js';
import { text } from './http-text.js';

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
