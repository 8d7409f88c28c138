import { describe, expect, it, jest } from '@jest/globals';
import {
  type BeforeApplicationShutdown,
  type CanActivate,
  type ExecutionContext,
  Injectable,
  Logger,
  Module,
  type NestInterceptor,
  type Provider,
  VersioningType,
} from '@nestjs/common';
import { APP_INTERCEPTOR, type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { DistributedLockModule, getLockServiceToken, Locked, LockKey, LockService } from 'nestjs-distributed-lock';
import {
  type InspectedKey,
  LockInspectorModule,
  type LockInspectorOptions,
  type InspectorState,
} from 'nestjs-distributed-lock/inspector';
import { withFailureKind } from 'nestjs-distributed-lock/core';
import { memory } from 'nestjs-distributed-lock/memory';
import { map } from 'rxjs';
import { eventually } from '../support/eventually.js';
import { closing, listen, root } from './apps.js';
import { text } from './http-text.js';

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

@Injectable()
class Sales {
  @Locked('sale_:id')
  async buy(@LockKey('id') _id: number, work: () => Promise<void>): Promise<void> {
    await work();
  }
}

const GUARDED = { guard: OnCallGuard, imports: [KeeperModule] };
const AUTHORIZED = { headers: { authorization: 'Bearer on-call' } };

async function open(
  adapter: AbstractHttpAdapter,
  options: Partial<LockInspectorOptions> = {},
  providers: Provider[] = [],
) {
  const lockModule = DistributedLockModule.forRoot({
    backends: { default: memory(), ledger: memory() },
    namespace: 'shop',
    defaults: { ttlMs: 1_000, waitMs: 20_000 },
    logger: false,
  });
  const metadata = {
    imports: [lockModule, LockInspectorModule.forRoot({ guard: 'none', ...options })],
    providers: [Sales, ...providers],
  };
  const app = closing(await NestFactory.create(root(metadata), adapter, { logger: false, abortOnError: false }));
  const url = `${await listen(app)}/locks`;
  const read = async (search = ''): Promise<InspectorState> => {
    const response = await fetch(`${url}/state?search=${encodeURIComponent(search)}`, AUTHORIZED);
    return (await response.json()) as InspectorState;
  };
  return { app, url, locks: app.get(LockService), sales: app.get(Sales), read };
}

function keysWaiting(locks: LockService): number {
  return locks.inspect()[0]?.waitersHere ?? 0;
}

function keysOf(state: InspectorState, name = 'default'): readonly InspectedKey[] {
  return state.backends.find((backend) => backend.name === name)?.keys ?? [];
}

function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<string> {
  const { origin } = new URL(url);
  return text(`${url}/evict`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', origin, ...AUTHORIZED.headers, ...headers },
  });
}

/** Resolves to the status. Unlike `fetch`, sends any `Host`. */
async function postWithHost(url: string, body: unknown, host: string, origin: string): Promise<number | undefined> {
  const headers = { host, origin, 'content-type': 'application/json', connection: 'close' };
  const sent = request(`${url}/evict`, { method: 'POST', headers }).end(JSON.stringify(body));
  const [response]: IncomingMessage[] = await once(sent, 'response');
  response?.resume();
  return response?.statusCode;
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
    await using next = await locks.acquire('k', { reentrant: false });
    await lost;
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'revoked' });
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    expect((await read()).troubles.map(({ type }) => type).toSorted()).toEqual(['evicted', 'lost']);
  });

  it('logs a freed key without the control characters of others', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const { url, locks, read } = await open(adapter(), { who: () => 'eve\u001B[2J' });
    await using _held = await locks.acquire('k\u009B');
    const [{ holder }] = keysOf(await read()) as [InspectedKey];
    await post(url, { backend: 'default', key: 'k\u009B', owner: holder?.owner });
    expect(String(warn.mock.calls[0]?.[0])).toMatch(/^default: "k\\u\{9B\}" is taken .* as eve\\u\{1B\}\[2J at /u);
    warn.mockRestore();
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
    await expect(locks.acquire('k', { waitMs: 0, reentrant: false })).rejects.toThrow();
    const { value = '' } = await reader.read();
    expect(JSON.parse(value.replace('data: ', ''))).toMatchObject({ type: 'timedOut', backend: 'default', key: 'k' });
    await _lock.release();
    const closed = app.close();
    expect((await reader.read()).done).toBe(true);
    await closed;
  });

  it('lets the application end, although an open page connects again meanwhile', async () => {
    const answers: number[] = [];
    let url = '';
    const reconnecting: BeforeApplicationShutdown = {
      beforeApplicationShutdown: async () => {
        const signal = AbortSignal.timeout(2_000);
        const response = await fetch(`${url}/events`, { signal });
        answers.push(response.status);
      },
    };
    const opened = await open(adapter(), {}, [{ provide: 'page', useValue: reconnecting }]);
    url = opened.url;
    await opened.app.close();
    expect(answers).toEqual([204]);
  });

  it('frees a key behind a proxy that names the default port', async () => {
    const { url, locks, read } = await open(adapter());
    await using _lock = await locks.acquire('k');
    const [{ holder }] = keysOf(await read()) as [InspectedKey];
    const eviction = { backend: 'default', key: 'k', owner: holder?.owner };
    const behindProxy = (host: string, origin: string) => postWithHost(url, eviction, host, origin);
    expect(await behindProxy('a.example:80', 'https://a.example')).toBe(403);
    expect(await behindProxy('a.example:8080', 'http://a.example')).toBe(403);
    expect(await behindProxy('', 'http://a.example')).toBe(403);
    expect(await behindProxy('a.example:80', 'http://a.example')).toBe(200);
  });

  it('goes on after keys that cannot be read, and says so', async () => {
    const { locks, read } = await open(adapter());
    const keys = Array.from({ length: 40 }, (_, index) => `k${index + 10}`);
    const held = await Promise.all(keys.map((key) => locks.acquire(key)));
    const { store } = locks.backend;
    const look = store.look?.bind(store);
    store.look = async (key) => {
      if (/:k1[01]$/u.test(key)) throw withFailureKind(new Error('WRONGTYPE of another program'), 'value');
      return (await look?.(key)) ?? {};
    };
    const state = await read();
    const readable = keysOf(state).filter(({ holder }) => holder?.pid === process.pid);
    expect(readable.map(({ key }) => key)).toEqual(keys.slice(2));
    expect(keysOf(state)).toHaveLength(40);
    expect(state.backends[0]?.error).toMatch(/"shop:k10": WRONGTYPE of another program \(1 more key\)$/u);
    for (const lock of held) await lock.release();
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
