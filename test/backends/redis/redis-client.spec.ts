import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { LockBackendError, LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisClient, type RedisMode } from 'nestjs-distributed-lock/redis';
import { freePort } from '../../servers/free-port.js';
import { RedisServer } from '../../servers/redis-server.js';
import { eventually } from '../../support/eventually.js';
import { Holder } from '../../support/harness-holder.js';
import { RedisWorld } from './redis-world.js';

const MODES: readonly RedisMode[] = ['queue', 'plain', 'getset'];
const EVENTS = ['connecting', 'ready', 'close', 'end', 'error', 'message'];

describe('a client that was given', () => {
  let world: RedisWorld;
  beforeAll(async () => {
    world = await RedisWorld.start();
  });
  afterEach(() => world.endTest());
  afterAll(() => world.stop());

  const makers: readonly [string, (url: string, options?: object) => RedisClient & EventCounter][] = [
    ['ioredis 6', (url, options = {}) => new Redis(url, options)],
    ['ioredis 6, RESP2', (url, options = {}) => new Redis(url, { ...options, protocol: 2 })],
    ['ioredis 6, numbers as text', (url, options = {}) => new Redis(url, { ...options, stringNumbers: true })],
    ['ioredis 6, auto-pipelining', (url, options = {}) => new Redis(url, { ...options, enableAutoPipelining: true })],
    ['ioredis 6, key prefix', (url, options = {}) => new Redis(url, { ...options, keyPrefix: 'app:' })],
    ['ioredis 5', (url, options = {}) => new Redis5(url, options)],
    ['ioredis 5, key prefix', (url, options = {}) => new Redis5(url, { ...options, keyPrefix: 'app:' })],
  ];

  describe.each(makers)('%s', (_version, make) => {
    it.each(MODES)('locks, waits, renews, and stays as it was (%s)', async (mode) => {
      const client = world.disconnecting(make(world.server.url));
      const listeners = EVENTS.map((event) => client.listenerCount(event));
      const [a, b] = [new LockService(redis({ client, mode })), new LockService(redis({ client, mode }))];
      const first = await a.acquire('key', { ttlMs: 600 });
      const waiting = b.acquire('key');
      await expect(b.tryAcquire('other')).resolves.not.toBeNull();
      await new Promise((resolve) => setTimeout(resolve, 900));
      expect(first.isHeld).toBe(true);
      const since = performance.now();
      await first.release();
      const second = await waiting;
      expect(performance.now() - since).toBeLessThan(500);
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
      await Promise.all([a.close(), b.close()]);
      await expect(client.call('PING')).resolves.toBe('PONG');
      expect(EVENTS.map((event) => client.listenerCount(event))).toEqual(listeners);
    });
  });

  it('is never cut, also when an answer is overdue', async () => {
    const client = world.disconnecting(new Redis(world.server.url));
    const id = await client.client('ID');
    const service = world.closing(new LockService(redis({ client, commandTimeoutMs: 100 })));
    await service.withLock('warm', () => undefined);
    world.server.freeze();
    try {
      await expect(service.acquire('key', { waitMs: 300 })).rejects.toBeInstanceOf(LockBackendError);
      expect(service.health).toMatchObject({ status: 'down', detail: 'no answer within 100 ms' });
    } finally {
      world.server.thaw();
    }
    await eventually(async () => expect(await service.withLock('other', () => 'in')).toBe('in'));
    expect(service.health).toEqual({ status: 'up' });
    await expect(client.client('ID')).resolves.toBe(id);
    await eventually(async () => expect(await world.operator.exists('lock:{key}')).toBe(0));
  });

  it('that has not connected yet is idle, and is used as it is', async () => {
    const client = world.disconnecting(new Redis(world.server.url, { lazyConnect: true }));
    const service = world.closing(new LockService(redis({ client })));
    expect(service.health).toEqual({ status: 'idle' });
    await service.withLock('key', () => undefined);
    expect(service.health).toEqual({ status: 'up' });
  });

  it('that was ended is an error at once', async () => {
    const client = new Redis(world.server.url);
    const service = world.closing(new LockService(redis({ client })));
    await service.withLock('key', () => undefined);
    await client.quit();
    await expect(service.tryAcquire('key')).rejects.toThrow(/Connection is closed/);
    expect(service.health.status).toBe('down');
  });
});

describe('connections of our own', () => {
  let world: RedisWorld;
  beforeAll(async () => {
    world = await RedisWorld.start();
  });
  afterEach(() => world.endTest());
  afterAll(() => world.stop());

  it.each(MODES)('a server that is down at the start is an error in time, and then it is up (%s)', async (mode) => {
    const port = await freePort();
    const service = world.closing(new LockService(redis({ url: `redis://127.0.0.1:${port}`, mode })));
    const since = performance.now();
    await expect(service.acquire('key', { waitMs: 60_000 })).rejects.toThrow(/ECONNREFUSED/);
    expect(performance.now() - since).toBeLessThan(4_000);
    expect(service.health).toMatchObject({ status: 'down', detail: expect.stringContaining('ECONNREFUSED') });
    const server = await RedisServer.start({ port });
    try {
      await eventually(() => expect(service.health.status).toBe('up'));
      await expect(service.withLock('key', () => 'in')).resolves.toBe('in');
    } finally {
      await service.close();
      await server.stop();
    }
  });

  it.each(MODES)('everything settles on a frozen server, and nothing runs late (%s)', async (mode) => {
    const service = world.service({ mode, commandTimeoutMs: 150 });
    const lock = await service.acquire('held', { ttlMs: 1_000 });
    const told = new Promise((resolve) => lock.signal.addEventListener('abort', resolve, { once: true }));
    world.server.freeze();
    try {
      const since = performance.now();
      await expect(service.acquire('key', { waitMs: 400 })).rejects.toBeInstanceOf(LockBackendError);
      await expect(service.tryAcquire('key')).rejects.toBeInstanceOf(LockBackendError);
      await told;
      expect(performance.now() - since).toBeLessThan(1_500);
      expect(service.health.status).toBe('down');
    } finally {
      world.server.thaw();
    }
    await eventually(async () => expect(await service.withLock('key', () => 'in')).toBe('in'));
    await eventually(async () => expect(await world.operator.keys('lock:{key}')).toEqual([]));
  });

  it('are replaced when an answer is overdue, so that nothing that was given up runs late', async () => {
    const ours = async () =>
      /id=(\d+) .*name=nestjs-distributed-lock/.exec(String(await world.operator.client('LIST')))?.[1];
    const service = world.service({ commandTimeoutMs: 100 });
    await service.withLock('key', () => undefined);
    const before = await ours();
    world.server.freeze();
    await expect(service.tryAcquire('key')).rejects.toThrow('no answer within 100 ms');
    world.server.thaw();
    await eventually(async () => expect(await service.withLock('key', () => 'in')).toBe('in'));
    expect(before).toMatch(/^\d+$/);
    await expect(ours()).resolves.not.toBe(before);
  });

  it('a restart that lost everything is told within a round trip after the reconnect (A26)', async () => {
    const service = world.service();
    const lock = await service.acquire('key', { ttlMs: 60_000 });
    const told = new Promise((resolve) => lock.signal.addEventListener('abort', resolve, { once: true }));
    await world.server.restart({ empty: true });
    const since = performance.now();
    await told;
    expect(performance.now() - since).toBeLessThan(2_000);
    expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
  });

  it('a partition that heals leaves the waiter in line', async () => {
    const proxy = await world.proxy();
    const holder = await world.service().acquire('key');
    const waiter = world.service({ url: proxy.url, commandTimeoutMs: 200 });
    const waiting = waiter.acquire('key', { waitMs: 30_000 });
    await eventually(async () => expect(await world.waitersFor('key')).toBe(1));
    proxy.reset();
    await eventually(() => expect(waiter.health.status).toBe('down'));
    await holder.release();
    await waiting;
  });

  it.each(MODES)('leave a process that can exit, whatever the server does (%s)', async (mode) => {
    const { url } = world.server;
    await using idle = await Holder.start({ backend: 'redis', url, mode });
    await idle.acquire('key', { ttlMs: 1_000 });
    await idle.close();
    await expect(idle.exit()).resolves.toEqual({ code: 0, signal: null });

    await using unlucky = await Holder.start({ backend: 'redis', url, mode });
    await unlucky.acquire('other', { ttlMs: 1_000 });
    world.server.freeze();
    try {
      await unlucky.close();
      await expect(unlucky.exit()).resolves.toEqual({ code: 0, signal: null });
      expect(unlucky.child.stderr).toBe('');
    } finally {
      world.server.thaw();
    }
  });

  it('R9: say so when the server may delete locks for want of memory', async () => {
    await world.operator.config('SET', 'maxmemory-policy', 'allkeys-lru');
    try {
      const service = world.service();
      await service.withLock('key', () => undefined);
      await eventually(() => expect(service.health.detail).toMatch(/allkeys-lru.*noeviction/));
      expect(service.health.status).toBe('up');
    } finally {
      await world.operator.config('SET', 'maxmemory-policy', 'noeviction');
    }
  });
});

describe('rights and secrets', () => {
  const password = 'c4n4ry-p4ssw0rd';
  let world: RedisWorld;
  beforeAll(async () => {
    world = await RedisWorld.start();
  });
  afterEach(() => world.endTest());
  afterAll(() => world.stop());

  const urlOf = (user: string, secret = password) => world.server.url.replace('//', `//${user}:${secret}@`);
  const allow = (user: string, ...rights: string[]) =>
    world.operator.acl('SETUSER', user, 'reset', 'on', `>${password}`, ...rights);
  const QUEUE_RIGHTS =
    '~lock:* &lock:* +eval +evalsha +get +set +del +pttl +pexpire +time +publish +subscribe +unsubscribe +lindex +lpop +lrange +lrem +rpush +info';
  const RIGHTS: Record<RedisMode, string> = {
    queue: QUEUE_RIGHTS,
    plain: '~lock:* +eval +evalsha +get +set +del +pttl +pexpire +time +info',
    getset: '~lock:* +get +setnx +getset +del +time +info',
  };

  it.each(MODES)('the rights in the documentation are enough (%s)', async (mode) => {
    await allow('app', ...RIGHTS[mode].split(' '));
    await world.operator.acl('LOG', 'RESET');
    const options = { mode, url: urlOf('app') };
    const [a, b] = [world.service(options), world.service(options)];
    const lock = await a.acquire('key', { ttlMs: 600 });
    const waiting = b.acquire('key');
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(lock.isHeld).toBe(true);
    await lock.release();
    await (await waiting).release();
    expect([a.health, b.health]).toEqual([{ status: 'up' }, { status: 'up' }]);
    // ioredis introduces itself, and does not mind being refused.
    expect((await denied()).filter((command) => !String(command).startsWith('client'))).toEqual([]);
  });

  it.each(QUEUE_RIGHTS.split(' ').filter((right) => right.startsWith('+')))(
    'and none of them is too many: %s is missed',
    async (right) => {
      await allow('app', ...QUEUE_RIGHTS.split(' ').filter((other) => other !== right));
      await world.operator.script('FLUSH');
      await world.operator.acl('LOG', 'RESET');
      await toil(urlOf('app')).catch(() => undefined);
      await eventually(async () => expect(await denied()).toContain(right.slice(1)));
    },
  );

  /** Everything that needs a right: acquire, renew, wait, hand over, give up waiting, release. */
  async function toil(url: string): Promise<void> {
    const [a, b, c] = [world.service({ url }), world.service({ url }), world.service({ url })];
    const lock = await a.acquire('key', { ttlMs: 600, waitMs: 100 });
    const leaving = c.acquire('key', { waitMs: 200 }).catch(() => undefined);
    const waiting = b.acquire('key', { waitMs: 800 }).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 400));
    await lock.release();
    await Promise.all([leaving, (await waiting)?.release()]);
    await Promise.all([a.close(), b.close(), c.close()]);
  }

  /** What the server refused since the last reset, in clients and in scripts. */
  async function denied(): Promise<unknown[]> {
    const entries = await world.operator.acl('LOG');
    if (!Array.isArray(entries)) throw new Error('an ACL log is a list');
    return entries.map((entry) => (Array.isArray(entry) ? entry[entry.indexOf('object') + 1] : undefined));
  }

  it('R15: neither the password nor an owner is in any error or in what is printed', async () => {
    await allow('app', ...QUEUE_RIGHTS.split(' '));
    const shown: string[] = [];
    const show = (...values: unknown[]) => shown.push(...values.map((value) => inspect(value, { depth: 20 })));
    const observers = [
      {
        backendFailed: (event: object) => show(event),
        healthChanged: (event: object) => show(event),
        jeopardy: (event: object) => show(event),
      },
    ];
    const failing = async (url: string, before?: () => unknown, after?: () => unknown) => {
      const service = world.closing(new LockService(redis({ url, commandTimeoutMs: 150 }), { observers }));
      await before?.();
      await service.tryAcquire('key').catch((error: unknown) => show(error));
      show(service, service.backend, service.health);
      await after?.();
    };
    await failing(urlOf('app', `${password}-wrong`));
    expect(shown.join()).toContain('WRONGPASS');
    await failing(`redis://app:${password}@127.0.0.1:${await freePort()}`);
    expect(shown.join()).toContain('ECONNREFUSED');
    await world.operator.acl('SETUSER', 'app', '-evalsha');
    await failing(urlOf('app'));
    expect(shown.join()).toContain('NOPERM');
    await allow('app', ...QUEUE_RIGHTS.split(' '));
    await world.operator.rpush('lock:{key}', 'x');
    await failing(urlOf('app'));
    expect(shown.join()).toContain('WRONGTYPE');
    await failing(
      urlOf('app'),
      () => world.server.freeze(),
      () => world.server.thaw(),
    );
    expect(shown.join()).toContain('no answer within 150 ms');
    expect(shown.join()).not.toContain(password);
    // An owner is a UUID; none is anywhere.
    expect(shown.join()).not.toMatch(/[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}/);
  });
});

interface EventCounter {
  listenerCount(event: string): number;
}
