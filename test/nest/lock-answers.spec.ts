import { Controller, type ExceptionFilter, Get, HttpException, Param, Post, UseFilters } from '@nestjs/common';
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
import { inMemory, listening } from './apps.js';
import { Crossing } from './crossing.js';

describe('the answer to a lock error over HTTP', () => {
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
    expect(await answer(`${url}/own`)).toEqual([409, '1', 'own']);
    expect(await answer(`${url}/own-above`)).toEqual([409, '1', 'own']);
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
