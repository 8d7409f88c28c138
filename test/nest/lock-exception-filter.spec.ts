import { describe, expect, it } from '@jest/globals';
import {
  type ArgumentsHost,
  Body,
  Catch,
  ConsoleLogger,
  Controller,
  type ExceptionFilter,
  Get,
  HttpException,
  type INestApplication,
  Injectable,
  Param,
  Post,
  type Type,
  UseFilters,
} from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import {
  DistributedLockModule,
  type LockAnswers,
  type LockBackend,
  LockDeadlockError,
  Locked,
  LockLostError,
  LockService,
  LockTimeoutError,
  OptimisticConflictError,
  StaleFenceError,
} from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { application, inMemory, listen, listening } from './apps.js';
import { Crossing } from './crossing.js';

describe('LockExceptionFilter', () => {
  class Business extends Error {}

  const ERRORS: Record<string, Error> = {
    lost: new LockLostError('key', 'expired'),
    stale: new StaleFenceError('orders', { token: 1n }),
    deadlock: new LockDeadlockError(['a'], 'b'),
    conflict: new OptimisticConflictError('gave up after 11 attempts, the last one: secret', 11, {
      cause: new Error('secret'),
    }),
    business: new Business('secret'),
    teapot: new HttpException('teapot', 418),
  };

  const own: ExceptionFilter = { catch: (_, host) => host.switchToHttp().getResponse().status(409).json('own') };

  @Controller()
  class Sales {
    @Post('busy')
    @Locked('busy', { waitMs: 0 })
    async busy(): Promise<void> {}
    @Get('key/:id')
    @Locked('key_:query.id')
    async key(@Param('id') _id: string): Promise<void> {}
    @Get('error/:kind')
    async error(@Param('kind') kind: string): Promise<void> {
      throw ERRORS[kind] ?? new Error(kind);
    }
    @Get('own')
    @Locked('own')
    @UseFilters(own)
    async own(): Promise<void> {
      throw new LockTimeoutError('key', { waitMs: 0 });
    }
    @UseFilters(own)
    @Locked('own')
    @Get('own-above')
    async ownAbove(): Promise<void> {
      throw new LockTimeoutError('key', { waitMs: 0 });
    }
  }

  async function answer(url: string, init?: RequestInit): Promise<unknown[]> {
    const response = await fetch(url, init);
    const body: unknown = await response.json();
    return [response.status, response.headers.get('retry-after'), body];
  }

  it('answers for lock errors, and for nothing else', async () => {
    const url = await listening({ imports: [inMemory(new Crossing())], controllers: [Sales] });
    const body = (statusCode: number, code: string): unknown => expect.objectContaining({ statusCode, code });
    expect(await answer(`${url}/key/7`)).toEqual([400, null, body(400, 'LOCK_CONFIGURATION')]);
    expect(await answer(`${url}/error/lost`)).toEqual([500, null, body(500, 'LOCK_LOST')]);
    expect(await answer(`${url}/error/stale`)).toEqual([409, null, body(409, 'LOCK_STALE_FENCE')]);
    expect(await answer(`${url}/error/conflict`)).toEqual([
      409,
      null,
      {
        statusCode: 409,
        error: 'Conflict',
        code: 'OPTIMISTIC_CONFLICT',
        message: 'Other requests changed the same data first, try again later',
      },
    ]);
    expect(await answer(`${url}/error/deadlock`)).toEqual([500, null, body(500, 'LOCK_DEADLOCK')]);
    expect(await answer(`${url}/error/business`)).toEqual([
      500,
      null,
      { statusCode: 500, message: 'Internal server error' },
    ]);
    expect(await answer(`${url}/error/teapot`)).toEqual([418, null, { statusCode: 418, message: 'teapot' }]);
    expect(await answer(`${url}/own`)).toEqual([409, null, 'own']);
    expect(await answer(`${url}/own-above`)).toEqual([409, null, 'own']);
  });

  it('says 423 and when to come back, and nothing about the holder', async () => {
    const backend = memory();
    const other = new LockService(backend, { label: 'secret-host' });
    const module = DistributedLockModule.forRoot({ backend });
    const url = await listening({ imports: [module], controllers: [Sales] });
    const held = await other.acquire('busy');
    const [status, retryAfter, body] = await answer(`${url}/busy`, { method: 'POST' });
    expect([status, retryAfter]).toEqual([423, '1']);
    expect(body).toEqual({
      statusCode: 423,
      error: 'Locked',
      code: 'LOCK_TIMEOUT',
      message: 'Locked by another request, try again later',
    });
    await held.release();
  });

  it('says 503 when the backend is down, and nothing about it', async () => {
    const backend: LockBackend = memory()();
    backend.acquire = () => Promise.reject(new Error('redis://:password@host'));
    const url = await listening({ imports: [DistributedLockModule.forRoot(backend)], controllers: [Sales] });
    expect(await answer(`${url}/busy`, { method: 'POST' })).toEqual([
      503,
      '5',
      {
        statusCode: 503,
        error: 'Service Unavailable',
        code: 'LOCK_BACKEND',
        message: 'Locking is unavailable, try again later',
      },
    ]);
  });

  it('can be turned off', async () => {
    const module = DistributedLockModule.forRoot({ backend: memory(), exceptionFilter: false });
    const url = await listening({ imports: [module], controllers: [Sales] });
    expect(await answer(`${url}/error/lost`)).toEqual([
      500,
      null,
      { statusCode: 500, message: 'Internal server error' },
    ]);
  });

  it('answers as the options say', async () => {
    const exceptionFilter = {
      LOCK_TIMEOUT: { status: 409, retryAfterSeconds: 7 },
      LOCK_BACKEND: { retryAfterSeconds: 0 },
    };
    const backend: LockBackend = memory()();
    const module = DistributedLockModule.forRoot({ backend, exceptionFilter });
    const url = await listening({ imports: [module], controllers: [Sales] });
    const held = await new LockService(backend).acquire('busy');
    const busy = expect.objectContaining({ statusCode: 409, error: 'Conflict', code: 'LOCK_TIMEOUT' });
    expect(await answer(`${url}/busy`, { method: 'POST' })).toEqual([409, '7', busy]);
    await held.release();
    backend.acquire = () => Promise.reject(new Error('gone'));
    const down = expect.objectContaining({ statusCode: 503 });
    expect(await answer(`${url}/busy`, { method: 'POST' })).toEqual([503, null, down]);
  });

  it.each([
    [{ LOCK_TIMEOUT: { status: 200 } }, 'the status of LOCK_TIMEOUT must be from 400 to 599; it was 200'],
    [{ LOCK_TIMEOUT: { retryAfterSeconds: -1 } }, 'retryAfterSeconds of LOCK_TIMEOUT must be a whole number'],
    [{ LOCK_TIMEOUT: { retryAfter: 1 } }, 'LOCK_TIMEOUT takes status and retryAfterSeconds, not retryAfter'],
    [{ TIMEOUT: {} }, 'TIMEOUT is none of LOCK_TIMEOUT, LOCK_BACKEND'],
  ])('refuses the options %j', (exceptionFilter, why) => {
    const options = { backend: memory(), exceptionFilter: exceptionFilter as LockAnswers };
    expect(() => DistributedLockModule.forRoot(options)).toThrow(why);
  });
});

describe('lock errors under a filter that catches everything', () => {
  const BUSY = {
    statusCode: 423,
    error: 'Locked',
    code: 'LOCK_TIMEOUT',
    message: 'Locked by another request, try again later',
  };

  @Controller()
  class Sales {
    @Post('buy')
    @Locked('sale', { waitMs: 0 })
    async buy(): Promise<void> {}
  }

  @Catch()
  class CatchAll implements ExceptionFilter {
    catch(error: unknown, host: ArgumentsHost): void {
      const status = error instanceof HttpException ? error.getStatus() : 500;
      host.switchToHttp().getResponse().status(status).json('caught');
    }
  }

  @UseFilters(CatchAll)
  @Controller()
  class CatchingSales extends Sales {}

  @Catch(LockTimeoutError)
  class Own implements ExceptionFilter {
    catch(error: LockTimeoutError, host: ArgumentsHost): void {
      host.switchToHttp().getResponse().status(409).json(error.code);
    }
  }

  @UseFilters(new Own())
  @Controller()
  class OwnSales extends Sales {}

  async function buying(
    controller: Type,
    exceptionFilter: boolean,
    filter?: (app: INestApplication) => ExceptionFilter,
  ) {
    const module = DistributedLockModule.forRoot({ backend: memory(), exceptionFilter });
    const app = await application({ imports: [module], controllers: [controller] });
    if (filter) app.useGlobalFilters(filter(app));
    const url = await listen(app);
    await app.get(LockService).acquire('sale');
    const response = await fetch(`${url}/buy`, { method: 'POST' });
    return [response.status, await response.json()];
  }

  it('keep their answer, whoever it is', async () => {
    expect(await buying(Sales, true, () => new CatchAll())).toEqual([423, BUSY]);
    expect(await buying(Sales, true, (app) => new BaseExceptionFilter(app.getHttpAdapter()))).toEqual([423, BUSY]);
    expect(await buying(CatchingSales, true)).toEqual([423, BUSY]);
  });

  it('are left to a filter of the class for just such errors', async () => {
    expect(await buying(OwnSales, true, () => new CatchAll())).toEqual([409, 'LOCK_TIMEOUT']);
  });

  it('are left to all of them where ours is turned off', async () => {
    expect(await buying(Sales, false, () => new CatchAll())).toEqual([500, 'caught']);
    expect(await buying(Sales, false, () => new Own())).toEqual([409, 'LOCK_TIMEOUT']);
  });
});

describe('who is to blame for a key that cannot be', () => {
  @Injectable()
  class Accounts {
    @Locked('account_:id')
    async open(id?: string): Promise<unknown> {
      return id;
    }
  }

  @Controller()
  class Sales {
    constructor(private readonly accounts: Accounts) {}
    @Get('service')
    @Locked('sale')
    service(): Promise<unknown> {
      return this.accounts.open();
    }
    @Post('handler')
    @Locked('sale_:sku')
    async handler(@Body('sku') _sku?: string): Promise<void> {}
    @Post('function')
    @Locked((sku?: string) => sku ?? '')
    async function(@Body('sku') _sku?: string): Promise<void> {}
  }

  class Log extends ConsoleLogger {
    readonly lines: string[] = [];
    override log = (): void => undefined;
    override debug = (message: unknown): void => void this.lines.push(`debug ${String(message)}`);
    override warn = (message: unknown): void => void this.lines.push(`warn ${String(message)}`);
    override error = (message: unknown): void => void this.lines.push(`error ${String(message)}`);
  }

  it('is our own code when it called a service, and the request when it named nothing to its handler', async () => {
    const log = new Log();
    const imports = [DistributedLockModule.forRoot({ backend: memory(), defaults: { waitMs: 0 } })];
    const app = await application({ imports, controllers: [Sales], providers: [Accounts] }, { logger: log });
    const url = await listen(app);
    expect((await fetch(`${url}/service`)).status).toBe(500);
    expect(log.lines).toEqual([expect.stringMatching(/^error :id in "account_:id" \(Accounts\.open\) is undefined/)]);
    log.lines.length = 0;
    expect((await fetch(`${url}/handler`, { method: 'POST' })).status).toBe(400);
    expect((await fetch(`${url}/function`, { method: 'POST' })).status).toBe(400);
    expect(log.lines).toEqual([
      expect.stringMatching(/^warn :sku in "sale_:sku"/),
      expect.stringMatching(/^warn .*must not be empty/),
    ]);
    log.lines.length = 0;
    const held = await app.get(LockService).acquire('sale');
    expect((await fetch(`${url}/service`)).status).toBe(423);
    expect(log.lines).toEqual([expect.stringMatching(/^debug "sale" is held by/)]);
    await held.release();
  });
});
