import { request } from 'node:http';
import { connect, constants } from 'node:http2';
import { createConnection } from 'node:net';
import { text } from 'node:stream/consumers';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  Param,
  Post,
  RequestTimeoutException,
  UseInterceptors,
} from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { NestFactory } from '@nestjs/core';
import { DistributedLockModule, Locked, LockService } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { map, type Observable, of, raceWith, Subject } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { closing, listen, root } from './apps.js';
import { Deferred } from './crossing.js';
import { KeptLog } from './kept-log.js';

const timeIsUp = new Subject<void>();

/** Stops waiting for the handler, as `timeout` of RxJS does, when a test says so. */
@Injectable()
class TimeLimit implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
    const failure = timeIsUp.pipe(
      map(() => {
        throw new RequestTimeoutException();
      }),
    );
    return next.handle().pipe(raceWith(failure));
  }
}

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('a request whose client has gone, %s', (_, adapter) => {
  const ran: string[] = [];
  let beforeCall = new Deferred();
  let outcome: Promise<unknown> | undefined;

  @Injectable()
  class Stock {
    @Locked('sale')
    async reserve(who: string): Promise<string> {
      ran.push(who);
      return who;
    }
  }

  @Controller()
  class Sales {
    constructor(private readonly stock: Stock) {}
    @Post('long/:who')
    @Locked('sale', { waitMs: 600_000 })
    async long(@Param('who') who: string): Promise<string> {
      ran.push(who);
      return who;
    }
    @Post('never')
    never(): Promise<never> {
      return new Promise(() => undefined);
    }
    @Post('service/:who')
    service(@Param('who') who: string): Promise<string> {
      return this.stock.reserve(who);
    }
    @UseInterceptors(TimeLimit)
    @Post('limited/:who')
    @Locked('sale')
    async limited(@Param('who') who: string): Promise<string> {
      ran.push(who);
      return who;
    }
    @UseInterceptors(TimeLimit)
    @Post('begins-late/:who')
    beginsLate(@Param('who') who: string): Promise<unknown> {
      return (outcome = beforeCall.promise.then(() => this.stock.reserve(who)));
    }
    @Post('buy/:who')
    @Locked('sale')
    async buy(@Param('who') who: string): Promise<string> {
      ran.push(who);
      return who;
    }
    @Post('stream/:who')
    @Locked('sale')
    stream(@Param('who') who: string): Observable<string> {
      ran.push(who);
      return of(who);
    }
    @Post('several/:who')
    @Locked(['other', 'sale'])
    async several(@Param('who') who: string): Promise<string> {
      ran.push(who);
      return who;
    }
  }

  afterEach(() => {
    ran.splice(0);
    beforeCall = new Deferred();
    outcome = undefined;
  });

  async function start() {
    const imports = [DistributedLockModule.forRoot(memory())];
    const log = new KeptLog();
    const module = root({ imports, controllers: [Sales], providers: [Stock] });
    const app = closing(await NestFactory.create(module, adapter(), { logger: log, forceCloseConnections: true }));
    const url = await listen(app);
    const locks = app.get(LockService);
    const waiters = (): number => locks.inspect().find(({ key }) => key === 'sale')?.waitersHere ?? 0;
    /** Goes away as soon as its request waits for the lock. */
    const leave = async (path: string): Promise<void> => {
      const before = waiters();
      const client = request(`${url}/${path}`, { method: 'POST' });
      client.on('error', () => undefined);
      client.end();
      await eventually(() => waiters() === before + 1);
      client.destroy();
    };
    return { url, locks, waiters, leave, log };
  }

  it.each(['buy', 'stream', 'several'])('does not wait any longer, and "%s" does not run', async (path) => {
    const { url, locks, waiters, leave, log } = await start();
    const held = await locks.acquire('sale');
    await leave(`${path}/gone`);
    await eventually(() => waiters() === 0);
    const next = fetch(`${url}/${path}/here`, { method: 'POST' });
    await eventually(() => waiters() === 1);
    await held.release();
    expect(await (await next).text()).toBe('here');
    expect(ran).toEqual(['here']);
    expect(log.lines).toEqual([]);
    await eventually(() => locks.inspect().length === 0);
  });

  it('does not wait any longer when its pipelined request loses its connection', async () => {
    const { url, locks, waiters } = await start();
    const held = await locks.acquire('sale');
    const connection = createConnection(Number(new URL(url).port), '127.0.0.1');
    connection.write(['never', 'long/gone'].map((path) => `POST /${path} HTTP/1.1\r\nHost: shop\r\n\r\n`).join(''));
    await eventually(() => waiters() === 1);
    connection.destroy();
    await eventually(() => waiters() === 0);
    await held.release();
    expect(ran).toEqual([]);
  });

  it('does not wait any longer than an interceptor does', async () => {
    const { url, locks, waiters } = await start();
    const held = await locks.acquire('sale');
    const late = fetch(`${url}/limited/late`, { method: 'POST' });
    await eventually(() => waiters() === 1);
    timeIsUp.next();
    expect((await late).status).toBe(408);
    await eventually(() => waiters() === 0);
    await held.release();
    expect(await (await fetch(`${url}/limited/here`, { method: 'POST' })).text()).toBe('here');
    expect(ran).toEqual(['here']);
  });

  it('lets work begin that outlives it, such as a timer that it has started', async () => {
    const { url } = await start();
    const late = fetch(`${url}/begins-late/late`, { method: 'POST' });
    await eventually(() => outcome !== undefined);
    timeIsUp.next();
    expect((await late).status).toBe(408);
    beforeCall.resolve();
    await expect(outcome).resolves.toBe('late');
  });

  it('goes on waiting in a service that its handler calls: the wait belongs to whoever called', async () => {
    const { url, locks, leave, waiters } = await start();
    const held = await locks.acquire('sale');
    await leave('service/gone');
    await leave('buy/given-up');
    await eventually(() => waiters() === 1);
    await held.release();
    expect(await (await fetch(`${url}/service/here`, { method: 'POST' })).text()).toBe('here');
    expect(ran).toEqual(['gone', 'here']);
  });
});

it('a request over HTTP/2 whose client has gone does not wait any longer', async () => {
  const ran: string[] = [];

  @Controller()
  class Sales {
    @Post('buy/:who')
    @Locked('sale')
    async buy(@Param('who') who: string): Promise<string> {
      ran.push(who);
      return who;
    }
  }

  const module = root({ imports: [DistributedLockModule.forRoot(memory())], controllers: [Sales] });
  const app = closing(await NestFactory.create(module, new FastifyAdapter({ http2: true }), { logger: false }));
  const client = connect(await listen(app));
  const locks = app.get(LockService);
  const waiters = (): number => locks.inspect()[0]?.waitersHere ?? 0;
  const held = await locks.acquire('sale');
  const gone = client.request({ ':method': 'POST', ':path': '/buy/gone' });
  gone.on('error', () => undefined);
  gone.end();
  await eventually(() => waiters() === 1);
  gone.close(constants.NGHTTP2_CANCEL);
  await eventually(() => waiters() === 0);
  await held.release();
  const here = client.request({ ':method': 'POST', ':path': '/buy/here' });
  here.end();
  expect(await text(here)).toBe('here');
  expect(ran).toEqual(['here']);
  client.close();
});
