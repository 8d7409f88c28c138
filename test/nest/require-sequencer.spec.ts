import { Body, Controller, Get, Injectable, type ModuleMetadata, Post, Sse } from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { DistributedLockModule, LockConfigurationError, LockService, RequireSequencer } from 'nestjs-distributed-lock';
import { TestLockBackend } from 'nestjs-distributed-lock/testing';
import { memory } from 'nestjs-distributed-lock/memory';
import { EMPTY, type Observable } from 'rxjs';
import { context, listening } from './apps.js';

interface Write {
  readonly sku: string;
}

@Controller()
class Orders {
  @Post('order')
  @RequireSequencer('x-lock-sequencer', { key: ({ body }) => (body as { order: string }).order })
  write(): string {
    return 'written';
  }
}

@Controller()
class Ledger {
  @Post('any')
  @RequireSequencer('X-Lock-Sequencer')
  writeAny(): string {
    return 'written';
  }

  @Post('stock')
  @RequireSequencer('x-lock-sequencer', { key: ({ body }) => `stock_${(body as Write).sku}` })
  writeStock(@Body() { sku }: Write): string {
    return `${sku} written`;
  }
}

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('@RequireSequencer, %s', (_, adapter) => {
  it('lets in who holds the lock; 409 once it is over, 400 without a lock to show, 503 without an answer', async () => {
    const backend = new TestLockBackend();
    const imports = [DistributedLockModule.forRoot({ backend, namespace: 'shop' })];
    const url = await listening({ imports, controllers: [Ledger] }, adapter());
    const holder = new LockService(backend, { namespace: 'shop' });
    const post = async (path: string, sequencer?: string): Promise<number> => {
      const headers = {
        'content-type': 'application/json',
        ...(sequencer === undefined ? {} : { 'x-lock-sequencer': sequencer }),
      };
      const { status } = await fetch(`${url}/${path}`, { method: 'POST', body: '{"sku":"7"}', headers });
      return status;
    };

    const [seven, eight] = [await holder.acquire('stock_7'), await holder.acquire('stock_8')];
    expect(await post('any', seven.sequencer())).toBe(201);
    expect(await post('any', eight.sequencer())).toBe(201);
    expect(await post('stock', seven.sequencer())).toBe(201);
    expect(await post('stock', eight.sequencer())).toBe(400);
    expect(await post('any')).toBe(400);
    expect(await post('any', 'lock1.nonsense')).toBe(400);
    expect(await post('any', `${seven.sequencer()}, ${eight.sequencer()}`)).toBe(400);

    const shown = seven.sequencer();
    backend.breakDown();
    expect(await post('any', shown)).toBe(503);
    backend.repair();
    backend.revoke('shop:stock_7');
    expect(await post('any', shown)).toBe(409);
    expect(() => seven.sequencer()).toThrow('was taken away');
    await eight.release();
  });
});

it('@RequireSequencer demands the key also of a request that leaves out what it is made of', async () => {
  const backend = new TestLockBackend();
  const url = await listening({ imports: [DistributedLockModule.forRoot(backend)], controllers: [Orders] });
  const holder = new LockService(backend);
  const lock = await holder.acquire('mine');
  const headers = { 'content-type': 'application/json', 'x-lock-sequencer': lock.sequencer() };
  const order = async (body: object): Promise<number> =>
    (await fetch(`${url}/order`, { method: 'POST', body: JSON.stringify(body), headers })).status;
  expect(await order({ order: 'mine' })).toBe(201);
  for (const body of [{ order: 'theirs' }, {}, { order: null }, { order: ['mine'] }])
    expect(await order(body)).toBe(400);
  await lock.release();
});

it('@RequireSequencer refuses what is no name of a header where it is written', () => {
  expect(() => RequireSequencer('x lock')).toThrow(LockConfigurationError);
});

describe('@RequireSequencer where there is no HTTP', () => {
  const start = (metadata: ModuleMetadata): Promise<unknown> =>
    context({ imports: [DistributedLockModule.forRoot(memory())], ...metadata });

  it('stops the application on a message handler, alone and among the routes of a controller', async () => {
    @Controller()
    class Alone {
      @RequireSequencer('x-lock-sequencer')
      @MessagePattern('write')
      write(): string {
        return 'written';
      }
    }
    await expect(start({ controllers: [Alone] })).rejects.toThrow('Alone.write is none');
    @RequireSequencer('x-lock-sequencer')
    @Controller()
    class Among {
      @Get()
      read(): string {
        return 'read';
      }
      @MessagePattern('write')
      write(): string {
        return 'written';
      }
    }
    await expect(start({ controllers: [Among] })).rejects.toThrow(
      'Among.write is none. Put it on the routes one by one',
    );
  });

  it('stops the application on a service, which no guard stands before', async () => {
    @Injectable()
    class Service {
      @RequireSequencer('x-lock-sequencer')
      write(): string {
        return 'written';
      }
    }
    await expect(start({ providers: [Service] })).rejects.toThrow('Service.write is none');
  });

  it('lets routes be, whatever they answer with and whichever decorator stands above', async () => {
    @RequireSequencer('x-lock-sequencer')
    @Controller()
    class Routes {
      @RequireSequencer('x-lock-sequencer')
      @Get()
      below(): string {
        return '';
      }
      @Sse('events')
      @RequireSequencer('x-lock-sequencer')
      above(): Observable<string> {
        return EMPTY;
      }
    }
    await expect(start({ controllers: [Routes] })).resolves.toBeDefined();
  });
});
