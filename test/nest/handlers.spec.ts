import { Controller, Injectable } from '@nestjs/common';
import { ExternalContextCreator, NestFactory } from '@nestjs/core';
import {
  type ClientProxy,
  ClientProxyFactory,
  EventPattern,
  MessagePattern,
  type MicroserviceOptions,
  Payload,
  Transport,
} from '@nestjs/microservices';
import { Cron, Interval, ScheduleModule } from '@nestjs/schedule';
import { Locked, LockService } from 'nestjs-distributed-lock';
import { firstValueFrom, Observable, of, Subject } from 'rxjs';
import { eventually, freePort } from '../support/index.js';
import { application, closing, context, inMemory, root } from './apps.js';
import { Crossing, together } from './crossing.js';

describe('@Locked on a schedule', () => {
  it('lets one job in at a time, whichever of the two decorators stands above', async () => {
    const crossing = new Crossing(2);
    @Injectable()
    class Jobs {
      @Cron('* * * * * *')
      @Locked('restock')
      async cron(): Promise<void> {
        await crossing.cross('cron');
      }
      @Locked('restock')
      @Interval(10)
      async interval(): Promise<void> {
        await crossing.cross('interval');
      }
    }
    const app = await context({ imports: [inMemory(crossing), ScheduleModule.forRoot()], providers: [Jobs] });
    await eventually(() => crossing.releases > 4);
    expect(crossing.most).toBe(1);
    expect(new Set(crossing.keys)).toEqual(new Set(['restock']));
    await app.close();
  });

  it('skips a job that another instance does', async () => {
    const crossing = new Crossing();
    let runs = 0;
    @Injectable()
    class Jobs {
      @Interval(5)
      @Locked('restock', { onBusy: 'skip' })
      async restock(): Promise<void> {
        runs += 1;
      }
    }
    let skipped = 0;
    const observer = { timedOut: () => void (skipped += 1) };
    const app = await context({ imports: [inMemory(observer), ScheduleModule.forRoot()], providers: [Jobs] });
    const other = await app.get(LockService).acquire('restock');
    const before = runs;
    await eventually(() => skipped > 3);
    expect(runs).toBe(before);
    await other.release();
    await eventually(() => runs > before);
    expect(crossing.most).toBe(0);
  });
});

describe('@Locked on a microservice', () => {
  async function start(crossing: Crossing, controller: new () => object): Promise<ClientProxy> {
    const options = { host: '127.0.0.1', port: await freePort() };
    const module = root({ imports: [inMemory(crossing)], controllers: [controller] });
    const app = await NestFactory.createMicroservice<MicroserviceOptions>(module, {
      transport: Transport.TCP,
      options,
      logger: false,
    });
    closing(app);
    await app.listen();
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
    closing({ close: async () => client.close() } as never);
    return client;
  }

  it('locks messages and events', async () => {
    const crossing = new Crossing(4);
    @Controller()
    class Sales {
      @MessagePattern('buy')
      @Locked('sale_:id')
      buy(order: { readonly id: number }): Promise<string> {
        return crossing.cross(`bought ${order.id}`);
      }
      @Locked('sale_:id')
      @EventPattern('bought')
      async bought(@Payload('id') id: number): Promise<void> {
        await crossing.cross(id);
      }
      @MessagePattern('watch')
      @Locked('sale_:id')
      watch(@Payload() { id }: { readonly id: number }): Observable<string> {
        return of(`watched ${id}`);
      }
    }
    const client = await start(crossing, Sales);
    const events = together(2, () => firstValueFrom(client.emit('bought', { id: 7 }), { defaultValue: undefined }));
    const answers = together(2, () => firstValueFrom(client.send('buy', { id: 7 })));
    expect(await answers).toEqual(['bought 7', 'bought 7']);
    await events;
    expect(await firstValueFrom(client.send('watch', { id: 7 }))).toBe('watched 7');
    await eventually(() => crossing.releases === 5);
    expect(crossing.most).toBe(1);
    expect(crossing.keys).toEqual(Array(5).fill('sale_7'));
  });

  it('tells the caller of a busy key what it is, and not who has it', async () => {
    const answer = new Subject<string>();
    @Controller()
    class Sales {
      @MessagePattern('buy')
      @Locked('sale', { waitMs: 0 })
      buy(): Promise<string> {
        return firstValueFrom(answer);
      }
      @MessagePattern('again')
      @Locked('sale', { waitMs: 0 })
      async again(): Promise<void> {}
    }
    const crossing = new Crossing();
    const client = await start(crossing, Sales);
    client.send('buy', {}).subscribe({ error: () => undefined });
    await eventually(() => crossing.keys.length === 1);
    await expect(firstValueFrom(client.send('again', {}))).rejects.toEqual({
      status: 'error',
      code: 'LOCK_TIMEOUT',
      message: 'Locked by another request, try again later',
    });
    // Closing waits for the holder.
    answer.next('bought');
  });
});

describe('@Locked on a handler of another library', () => {
  it('takes the lock, the request and the filter of a GraphQL resolver', async () => {
    const crossing = new Crossing();
    @Injectable()
    class Resolver {
      @Locked('sale_:id/:user.id')
      @Query()
      async buy(parent: unknown, { id }: { id?: string } = {}): Promise<string> {
        return crossing.cross(`${String(parent)} ${id}`);
      }
    }
    const app = await application({ imports: [inMemory(crossing)], providers: [Resolver] });
    await app.init();
    const resolver = app.get(Resolver);
    const handler = app
      .get(ExternalContextCreator)
      .create(
        resolver,
        Reflect.get(resolver, 'buy') as () => unknown,
        'buy',
        undefined,
        undefined,
        undefined,
        undefined,
        undefined,
        'graphql',
      );
    const call = (args: object): Promise<string> => handler('root', args, { req: { user: { id: 5 } } }, {});
    expect(await call({ id: 'a' })).toBe('root a');
    expect(crossing.keys).toEqual(['sale_a/5']);
    await expect(call({})).rejects.toMatchObject({
      message: 'What to lock is missing from the request, or invalid',
      extensions: { code: 'LOCK_CONFIGURATION', http: { status: 400 } },
    });
  });

  /** Stands for what makes a method a resolver. */
  function Query(): MethodDecorator {
    return (_target, _name, descriptor: PropertyDescriptor) =>
      Reflect.defineMetadata('graphql:resolver_type', 'Query', descriptor.value);
  }
});
