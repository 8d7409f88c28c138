import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  type INestApplication,
  Injectable,
  type LoggerService,
  type NestInterceptor,
  type Type,
  UseFilters,
  UseInterceptors,
} from '@nestjs/common';
import {
  BaseRpcExceptionFilter,
  type ClientProxy,
  ClientProxyFactory,
  EventPattern,
  MessagePattern,
  type MicroserviceOptions,
  RpcException,
  Transport,
} from '@nestjs/microservices';
import { DistributedLockModule, Locked, LockService } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { firstValueFrom, type Observable, Subject, throwError, timeout } from 'rxjs';
import { eventually, freePort } from '../support/index.js';
import { application, closing } from './apps.js';
import { Deferred } from './crossing.js';
import { KeptLog } from './kept-log.js';

interface Order {
  readonly id: string;
}

@Injectable()
class TimeLimit implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(timeout({ each: 50, with: () => throwError(() => new RpcException('too late')) }));
  }
}

@Controller()
class Sales {
  constructor(private readonly locks: LockService) {}

  @MessagePattern('buy')
  @Locked('sale_:id', { waitMs: 0 })
  async buy({ id }: Order): Promise<string> {
    return `bought ${id}`;
  }

  /** As Nest calls it without decorators on the parameters. */
  @Locked('sale_:id', { waitMs: 0 })
  @MessagePattern('bare')
  async bare(order: Order, _context: object): Promise<string> {
    return `bought ${order.id}`;
  }

  @MessagePattern('own')
  async own({ id }: Order): Promise<string> {
    return this.locks.withLock(`sale_${id}`, () => `bought ${id}`, { waitMs: 0 });
  }
}

@Controller()
class Audits {
  @EventPattern('bought')
  @Locked('audit_:id', { waitMs: 0 })
  async note({ id }: Order): Promise<string> {
    return id;
  }
}

@Controller()
class Tails {
  readonly opened = new Deferred<Observable<string>>();

  @MessagePattern('tail')
  @Locked('tail')
  @UseInterceptors(TimeLimit)
  async tail(): Promise<Observable<string>> {
    return this.opened.promise;
  }
}

/** Filters of a hybrid application are for HTTP: whoever wants everything caught says it on the class. */
@UseFilters(new BaseRpcExceptionFilter())
@Controller()
class CatchingSales extends Sales {}

describe('a client of a hybrid application, over TCP', () => {
  async function start(
    controller: Type,
    logger: LoggerService | false = false,
  ): Promise<{ client: ClientProxy; locks: LockService; app: INestApplication }> {
    const options = { host: '127.0.0.1', port: await freePort() };
    const module = DistributedLockModule.forRoot(memory());
    const app = await application({ imports: [module], controllers: [controller] }, { logger });
    app.connectMicroservice<MicroserviceOptions>({ transport: Transport.TCP, options });
    await app.startAllMicroservices();
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
    closing({ close: async () => client.close() } as never);
    return { client, locks: app.get(LockService), app };
  }

  it.each([
    ['buy', Sales],
    ['bare', Sales],
    ['own', Sales],
    ['buy', CatchingSales],
    ['own', CatchingSales],
  ])('is told that the key of "%s" is held, by %p', async (pattern, controller) => {
    const { client, locks } = await start(controller);
    const ask = (): Promise<unknown> => firstValueFrom(client.send(pattern, { id: 'a1' }));
    expect(await ask()).toBe('bought a1');
    const held = await locks.acquire('sale_a1');
    await expect(ask()).rejects.toEqual({
      status: 'error',
      code: 'LOCK_TIMEOUT',
      message: 'Locked by another request, try again later',
    });
    await held.release();
  });

  it('leaves no lock behind by a result that nobody waits for any more', async () => {
    const { client, locks, app } = await start(Tails);
    await expect(firstValueFrom(client.send('tail', {}))).rejects.toMatchObject({ message: 'too late' });
    expect(locks.inspect()).toHaveLength(1);
    app.get(Tails).opened.resolve(new Subject());
    await eventually(() => locks.inspect().length === 0);
  });

  it('is told that a message names no lock without an id', async () => {
    const { client } = await start(Sales);
    await expect(firstValueFrom(client.send('bare', { order: 'a1' }))).rejects.toMatchObject({
      code: 'LOCK_CONFIGURATION',
      message: 'What to lock is missing from the request, or invalid',
    });
  });

  it('whose event is lost because its key is busy is not told, and a warning says so', async () => {
    const log = new KeptLog();
    const { client, locks } = await start(Audits, log);
    const held = await locks.acquire('audit_a1');
    client.emit('bought', { id: 'a1' }).subscribe();
    await eventually(() => log.lines.length > 0);
    expect(log.lines[0]).toMatch(/^warn An event is lost: "audit_a1" is held by/);
    await held.release();
  });
});
