import { describe, expect, it } from '@jest/globals';
import {
  type ArgumentsHost,
  Controller,
  Get,
  HttpException,
  Injectable,
  Param,
  Post,
  UseFilters,
} from '@nestjs/common';
import { type HttpAdapterHost } from '@nestjs/core';
import {
  DistributedLockModule,
  Locked,
  type LockBackend,
  LockBackendError,
  LockDeadlockError,
  LockError,
  LockExceptionFilter,
  LockLostError,
  LockService,
  LockTimeoutError,
  OptimisticConflictError,
  StaleFenceError,
} from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { context, listening, inMemory, providing } from './apps.js';
import { Crossing } from './crossing.js';

describe('onBusy', () => {
  @Injectable()
  class Jobs {
    runs = 0;
    @Locked('job', { waitMs: 0 })
    async throws(): Promise<string> {
      return this.#run();
    }
    @Locked('job', { onBusy: 'skip' })
    async skips(): Promise<string | undefined> {
      return this.#run();
    }
    @Locked('job', { waitMs: 0, onBusy: ({ args, error }) => `${String(args[0])}: ${error.key}` })
    async answers(_who: string): Promise<string> {
      return this.#run();
    }
    @Locked('outer', { onBusy: 'skip' })
    async nested(): Promise<string> {
      return this.throws();
    }
    @Locked('other', { onBusy: () => 'instead' })
    async fails(error: Error): Promise<string> {
      throw error;
    }
    async #run(): Promise<string> {
      this.runs += 1;
      return 'done';
    }
  }

  it('throws, skips or answers when the key is held, and runs the method otherwise', async () => {
    const app = await providing(new Crossing(), Jobs);
    const jobs = app.get(Jobs);
    const held = await app.get(LockService).acquire('job');
    await expect(jobs.throws()).rejects.toBeInstanceOf(LockTimeoutError);
    expect(await jobs.skips()).toBeUndefined();
    expect(await jobs.answers('me')).toBe('me: job');
    await held.release();
    expect(await Promise.all([jobs.throws(), jobs.skips()])).toEqual(['done', undefined]);
    expect(await jobs.answers('me')).toBe('done');
    expect(jobs.runs).toBe(2);
  });

  it('is not asked about what the method throws, be it a time-out of its own', async () => {
    const app = await providing(new Crossing(), Jobs);
    const jobs = app.get(Jobs);
    const held = await app.get(LockService).acquire('job');
    await expect(jobs.nested()).rejects.toBeInstanceOf(LockTimeoutError);
    await held.release();
    const error = new LockTimeoutError('elsewhere', { waitMs: 0 });
    await expect(jobs.fails(error)).rejects.toBe(error);
  });

  it('is not asked when the backend is down', async () => {
    const backend = memory()();
    backend.acquire = () => Promise.reject(new Error('gone'));
    const app = await context({ imports: [DistributedLockModule.forRoot(backend)], providers: [Jobs] });
    await expect(app.get(Jobs).skips()).rejects.toBeInstanceOf(LockBackendError);
  });
});

describe('several keys', () => {
  @Injectable()
  class Accounts {
    readonly crossing = new Crossing();
    @Locked(['account_:to', 'account_:from', 'log'], { waitMs: 50 })
    transfer(from: string, to: string): Promise<string> {
      return this.crossing.cross(`${from} ${to}`);
    }
    @Locked((...names: string[]) => names, { waitMs: 0 })
    async all(..._names: string[]): Promise<string> {
      return 'all';
    }
  }

  it('are taken sorted, each once, and given back', async () => {
    const crossing = new Crossing();
    const app = await providing(crossing, Accounts);
    const accounts = app.get(Accounts);
    expect(await accounts.transfer('b', 'a')).toBe('b a');
    expect(await accounts.transfer('a', 'a')).toBe('a a');
    expect(crossing.keys).toEqual(['account_a', 'account_b', 'log', 'account_a', 'log']);
    expect(app.get(LockService).inspect()).toEqual([]);
  });

  it('never wait for each other in a circle', async () => {
    const app = await providing(new Crossing(), Accounts);
    const accounts = app.get(Accounts);
    const calls = Array.from({ length: 40 }, (_, index) =>
      index % 2 ? accounts.transfer('a', 'b') : accounts.transfer('b', 'a'),
    );
    expect(await Promise.all(calls)).toHaveLength(40);
    expect(accounts.crossing.most).toBe(1);
  });

  it('are all taken or none, within one waitMs', async () => {
    const crossing = new Crossing();
    const app = await providing(crossing, Accounts);
    const service = app.get(LockService);
    const held = await service.acquire('log');
    const since = performance.now();
    await expect(app.get(Accounts).transfer('x', 'y')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', key: 'log' });
    expect(performance.now() - since).toBeLessThan(120);
    expect(service.inspect().map(({ key }) => key)).toEqual(['log']);
    await held.release();
  });

  it('from a function are checked one by one', async () => {
    const app = await providing(new Crossing(), Accounts);
    const accounts = app.get(Accounts);
    expect(await accounts.all('b', 'a', 'b')).toBe('all');
    await expect(accounts.all()).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'key' });
    await expect(accounts.all('a', '')).rejects.toThrow('must not be empty');
    await expect(accounts.all('a', { toString: () => 'b' } as never)).rejects.toThrow('must be a string');
    await expect(accounts.all('\udc00')).rejects.toThrow('lone surrogate');
  });
});

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
    @UseFilters({ catch: (_, host) => host.switchToHttp().getResponse().status(409).json('own') })
    async own(): Promise<void> {
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
      { statusCode: 503, code: 'LOCK_BACKEND', message: 'Locking is unavailable, try again later' },
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

  it('tells WebSocket clients in their own shape, and other callers the error itself', () => {
    const told: unknown[] = [];
    const answerTo = (type: string, error: LockError | OptimisticConflictError): unknown => {
      const emit = (...event: unknown[]): number => told.push(event);
      const host = { getType: () => type, switchToWs: () => ({ getClient: () => ({ emit }) }) };
      const filter = new LockExceptionFilter({} as HttpAdapterHost);
      return filter['catch'](error, host as unknown as ArgumentsHost);
    };
    const error = new LockTimeoutError('key', { waitMs: 0 });
    answerTo('ws', error);
    const message = 'Locked by another request, try again later';
    expect(told).toEqual([['exception', { status: 'error', code: 'LOCK_TIMEOUT', message }]]);
    expect(() => answerTo('necord', error)).toThrow(error);
    answerTo('ws', new OptimisticConflictError('secret', 3));
    const conflict = 'Other requests changed the same data first, try again later';
    expect(told[1]).toEqual(['exception', { status: 'error', code: 'OPTIMISTIC_CONFLICT', message: conflict }]);
  });
});
