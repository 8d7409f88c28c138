import {
  type CanActivate,
  type ExecutionContext,
  Injectable,
  Module,
  type NestInterceptor,
  VersioningType,
} from '@nestjs/common';
import { APP_INTERCEPTOR, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { DistributedLockModule, getLockServiceToken, LockService } from 'nestjs-distributed-lock';
import { type InspectedKey, LockInspectorModule, type LockInspectorOptions } from 'nestjs-distributed-lock/inspector';
import { memory } from 'nestjs-distributed-lock/memory';
import { map } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { closing, listen, root } from './apps.js';
import { text } from './http-text.js';
import { AUTHORIZED, keysOf, open, post } from './inspected-app.js';

@Injectable()
class Keeper {
  letsIn({ authorization }: Record<string, string>): boolean {
    return authorization === 'Bearer on-call';
  }
}
@Module({ providers: [Keeper], exports: [Keeper] })
class KeeperModule {}

@Injectable()
class OnCallGuard implements CanActivate {
  constructor(private readonly keeper: Keeper) {}
  canActivate(context: ExecutionContext): boolean {
    return this.keeper.letsIn(context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers);
  }
}

const GUARDED = { guard: OnCallGuard, imports: [KeeperModule] };

function keysWaiting(locks: LockService): number {
  return locks.inspect()[0]?.waitersHere ?? 0;
}

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('the inspector, %s', (_, adapter) => {
  it('serves one page, which may run its own script only', async () => {
    const { url } = await open(adapter());
    const response = await fetch(url);
    const page = await response.text();
    const policy = response.headers.get('content-security-policy') ?? '';
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(response.headers.get('cache-control')).toContain('no-store');
    expect(policy).toMatch(/^default-src 'none'; .*frame-ancestors 'none'/u);
    for (const name of ['script', 'style']) {
      const [, content = ''] = new RegExp(`<${name}>([^]*?)</${name}>`, 'u').exec(page) ?? [];
      expect(policy).toContain(`${name}-src 'sha256-${createHash('sha256').update(content).digest('base64')}'`);
    }
    expect(page).not.toMatch(/(?:src|href)="(?!data:,)/u);
  });

  it('shows holders, waiters and what happened, of every backend', async () => {
    const { app, locks, sales, read } = await open(adapter());
    const ledger = app.get<LockService>(getLockServiceToken('ledger'));
    await using _invoice = await ledger.acquire('invoice');
    const paid = new EventEmitter();
    const payment = once(paid, 'paid').then(() => undefined);
    const buying = [sales.buy(7, () => payment), sales.buy(7, () => payment)];
    await eventually(() => keysWaiting(locks) === 1);
    await expect(locks.acquire('sale_7', { waitMs: 0 })).rejects.toThrow();
    const state = await read();
    expect(keysOf(state, 'ledger')).toMatchObject([{ key: 'invoice', holder: { pid: process.pid } }]);
    expect(keysOf(state)).toMatchObject([
      {
        key: 'sale_7',
        template: 'sale_:id',
        holder: { pid: process.pid, since: expect.any(String), leftMs: expect.any(Number) },
        here: { state: 'held', waitersHere: 1, fencingToken: expect.stringMatching(/^\d+$/u) },
      },
    ]);
    expect(state.troubles).toMatchObject([{ type: 'timedOut', backend: 'default', key: 'sale_7' }]);
    expect(state.backends[0]?.templates).toMatchObject([{ template: 'sale_:id', acquired: 1, timedOut: 1 }]);
    paid.emit('paid');
    await Promise.all(buying);
    await eventually(async () => {
      const { history, backends } = await read();
      expect(history[0]).toMatchObject({ type: 'released', key: 'sale_7' });
      expect(backends[0]?.templates).toMatchObject([{ template: 'sale_:id', acquired: 2 }]);
    });
  });

  it('shows all who share a key, and how much of it each has', async () => {
    const { locks, read } = await open(adapter());
    await using _two = await locks.acquire('api', { limit: 3, permits: 2 });
    await using _one = await locks.acquire('api', { limit: 3 });
    const waiting = locks.acquire('api');
    await eventually(async () => (await locks.look('api')).waiters?.length === 1);
    const shares = ['2 of 3 permits', '1 of 3 permits'].map((share) => ({ share, fencingToken: expect.any(String) }));
    expect(keysOf(await read())).toMatchObject([{ key: 'api', holder: shares[0], holders: shares, waiters: [{}] }]);
    await Promise.all([_two.release(), _one.release()]);
    await (await waiting).release();
  });

  it('finds a key by a part of its name', async () => {
    const { locks, read } = await open(adapter());
    await using _a = await locks.acquire('sale_41');
    await using _b = await locks.acquire('restock');
    expect(keysOf(await read('sale')).map(({ key }) => key)).toEqual(['sale_41']);
    expect(keysOf(await read('nothing'))).toEqual([]);
    expect(keysOf(await read()).map(({ key }) => key)).toEqual(['restock', 'sale_41']);
  });

  it('says that keys are missing, also for a search and where the server lists none', async () => {
    const { locks, read } = await open(adapter());
    Object.assign(locks.backend.store, { keys: undefined });
    const held = await Promise.all(
      Array.from({ length: 1_001 }, (_none, i) => locks.acquire(`sale_${i}`, { ttlMs: 60_000 })),
    );
    for (const search of ['', 'sale']) {
      const [backend] = (await read(search)).backends;
      expect([backend?.more, backend?.keys.length]).toEqual([true, 1_000]);
    }
    await Promise.all(held.map((lock) => lock.release()));
  });

  it('asks the guard about every route', async () => {
    const { url, locks, read } = await open(adapter(), GUARDED);
    await using lock = await locks.acquire('k');
    const [{ holder }] = keysOf(await read()) as [InspectedKey];
    for (const path of ['', '/state', '/events']) expect(await text(url + path)).toMatch(/^403 /u);
    const eviction = { backend: 'default', key: 'k', owner: holder?.owner };
    expect(await post(url, eviction, { authorization: 'Bearer nobody' })).toMatch(/^403 /u);
    expect(await text(url, AUTHORIZED)).toMatch(/^200 <!doctype html>/u);
    expect(lock.isHeld).toBe(true);
  });

  it('frees a key on a request of its own page only', async () => {
    const { url, locks, read } = await open(adapter());
    const lock = await locks.acquire('k');
    const [{ holder }] = keysOf(await read()) as [InspectedKey];
    const eviction = { backend: 'default', key: 'k', owner: holder?.owner };
    expect(await post(url, eviction, { origin: 'https://elsewhere.example' })).toMatch(/^403 /u);
    expect(await post(url, eviction, { origin: 'null' })).toMatch(/^403 /u);
    expect(await post(url, eviction, { 'sec-fetch-site': 'same-site' })).toMatch(/^403 /u);
    expect(await post(url, eviction, { 'content-type': 'text/plain' })).toMatch(/^415 /u);
    expect(await post(url, { ...eviction, owner: undefined })).toMatch(/^400 /u);
    expect(await post(url, { ...eviction, backend: 'toString' })).toMatch(/^404 /u);
    expect(await post(url, { ...eviction, owner: 'somebody else' })).toMatch(/^409 /u);
    expect(lock.isHeld).toBe(true);
    const lost = new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
    expect(await post(url, eviction)).toBe('200 {"evicted":true}');
    await using next = await locks.acquire('k');
    await lost;
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'revoked' });
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    expect((await read()).troubles.map(({ type }) => type).toSorted()).toEqual(['evicted', 'lost']);
  });

  it('remembers who freed a key, by the request that the guard let in', async () => {
    const who = (request: object): string => String(Reflect.get(Reflect.get(request, 'headers'), 'x-user'));
    const { url, locks, read } = await open(adapter(), { who });
    await using _held = await locks.acquire('k');
    const [{ holder }] = keysOf(await read()) as [InspectedKey];
    const eviction = { backend: 'default', key: 'k', owner: holder?.owner };
    expect(await post(url, eviction, { 'x-user': 'alice' })).toBe('200 {"evicted":true}');
    const { troubles } = await read();
    expect(troubles.find(({ type }) => type === 'evicted')?.detail).toMatch(/as alice at .*127\.0\.0\.1 asked$/u);
  });

  it('tells of trouble at once, until the application ends', async () => {
    const { app, url, locks } = await open(adapter());
    const { body, headers } = await fetch(`${url}/events`);
    expect(headers.get('content-type')).toBe('text/event-stream');
    const reader = (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    await reader.read();
    await using _lock = await locks.acquire('k');
    await expect(locks.acquire('k', { waitMs: 0 })).rejects.toThrow();
    const { value = '' } = await reader.read();
    expect(JSON.parse(value.replace('data: ', ''))).toMatchObject({ type: 'timedOut', backend: 'default', key: 'k' });
    await _lock.release();
    const closed = app.close();
    expect((await reader.read()).done).toBe(true);
    await closed;
  });

  it('is served under a prefix, versions and interceptors that wrap answers', async () => {
    const wrap: NestInterceptor = { intercept: (_context, next) => next.handle().pipe(map((data) => ({ data }))) };
    const metadata = {
      imports: [
        DistributedLockModule.forRoot(memory()),
        LockInspectorModule.forRoot({ path: 'on-call/locks', guard: 'none' }),
      ],
      providers: [{ provide: APP_INTERCEPTOR, useValue: wrap }],
    };
    const app = closing(await NestFactory.create(root(metadata), adapter(), { logger: false, abortOnError: false }));
    app.setGlobalPrefix('api').enableVersioning({ type: VersioningType.HEADER, header: 'x-version' });
    const url = `${await listen(app)}/api/on-call/locks`;
    expect(await text(url)).toMatch(/^200 <!doctype html>/u);
    expect(await text(`${url}/state`)).toMatch(/^200 \{"at":/u);
  });
});

describe('LockInspectorModule.forRoot', () => {
  it.each([[undefined], [null], [[]], ['None'], [{}], [[OnCallGuard, undefined]]])('refuses %p as a guard', (guard) => {
    const options = { guard } as unknown as LockInspectorOptions;
    expect(() => LockInspectorModule.forRoot(options)).toThrow(
      expect.objectContaining({ code: 'LOCK_CONFIGURATION', option: 'guard' }),
    );
  });

  it.each(['', 'a b', 'locks/:id', 'locks*'])('refuses the path %p', (path) => {
    expect(() => LockInspectorModule.forRoot({ path, guard: 'none' })).toThrow('path must be');
  });
});
