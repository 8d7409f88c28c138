import { LockBackendError, LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisMode } from 'nestjs-distributed-lock/redis';
import { atLeastMs, eventually, freePort, Holder, RedisServer, timeLimitOf } from '../../support/index.js';
import { RedisWorld } from './redis-world.js';

const MODES: readonly RedisMode[] = ['queue', 'plain', 'getset'];

describe.each(['ioredis', 'redis'] as const)('connections of our own, by %s', (clientPackage) => {
  const world = RedisWorld.shared();

  it.each(MODES)('a server that is down at the start is an error in time, and then it is up (%s)', async (mode) => {
    const port = await freePort();
    const service = world.closing(new LockService(redis({ url: `redis://127.0.0.1:${port}`, mode, clientPackage })));
    const since = performance.now();
    await expect(service.acquire('key', { waitMs: 60_000 })).rejects.toThrow(/ECONNREFUSED/);
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(4_000));
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

  it('a server with too many clients says so, and is not stormed', async () => {
    const rejected = async () =>
      Number(/rejected_connections:(\d+)/u.exec(await world.operator.info('stats'))?.[1] ?? Number.NaN);
    await world.operator.config('SET', 'maxclients', 1);
    try {
      const before = await rejected();
      const service = world.service({ clientPackage });
      // ioredis writes before it reads why the server has closed the connection.
      const reason = clientPackage === 'redis' ? /max number of clients reached/u : /EPIPE|ECONNRESET|max number of/u;
      await expect(service.acquire('key', { waitMs: 60_000 })).rejects.toThrow(reason);
      expect((await rejected()) - before).toBeLessThan(20);
    } finally {
      await world.operator.config('SET', 'maxclients', 10_000);
    }
  });

  it('a request fails in its time, also where that is longer than the time for a connection', async () => {
    const service = world.service({ requestTimeoutMs: 6_000, clientPackage });
    await world.server.whileFrozen(async () => {
      await expect(service.tryAcquire('key')).rejects.toThrow('no answer within 6000 ms');
    });
  });

  it.each(MODES)('everything settles on a frozen server, and nothing runs late (%s)', async (mode) => {
    const service = world.service({ mode, requestTimeoutMs: timeLimitOf(150), clientPackage });
    const lock = await service.acquire('held', { ttlMs: timeLimitOf(1_000) });
    const told = new Promise((resolve) => lock.signal.addEventListener('abort', resolve, { once: true }));
    await world.server.whileFrozen(async () => {
      const since = performance.now();
      await expect(service.acquire('key', { waitMs: timeLimitOf(400) })).rejects.toBeInstanceOf(LockBackendError);
      await expect(service.tryAcquire('key')).rejects.toBeInstanceOf(LockBackendError);
      await told;
      expect(performance.now() - since).toTakeLessThan(timeLimitOf(1_500));
      expect(service.health.status).toBe('down');
    });
    await eventually(async () => expect(await service.withLock('key', () => 'in')).toBe('in'));
    await eventually(async () => expect(await world.operator.keys('lock:{key}')).toEqual([]));
  });

  it('are replaced when an answer is overdue, so that nothing that was given up runs late', async () => {
    const ours = async () =>
      /id=(\d+) .*name=nestjs-distributed-lock/.exec(String(await world.operator.client('LIST')))?.[1];
    const requestTimeoutMs = timeLimitOf(100);
    const service = world.service({ requestTimeoutMs, clientPackage });
    await service.withLock('key', () => undefined);
    const before = await ours();
    world.server.freeze();
    await expect(service.tryAcquire('key')).rejects.toThrow(`no answer within ${requestTimeoutMs} ms`);
    world.server.thaw();
    await eventually(async () => expect(await service.withLock('key', () => 'in')).toBe('in'));
    expect(before).toMatch(/^\d+$/);
    await expect(ours()).resolves.not.toBe(before);
  });

  it('a restart that lost everything is told within a round trip after the reconnect (A26)', async () => {
    const service = world.service({ clientPackage });
    const lock = await service.acquire('key', { ttlMs: 60_000 });
    const told = new Promise((resolve) => lock.signal.addEventListener('abort', resolve, { once: true }));
    await world.server.restart({ empty: true });
    const since = performance.now();
    await told;
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(2_000));
    expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
  });

  it('a partition that heals leaves the waiter in line', async () => {
    const proxy = await world.proxy();
    const holder = await world.service().acquire('key');
    const waiter = world.service({ url: proxy.url, requestTimeoutMs: timeLimitOf(200), clientPackage });
    const waiting = waiter.acquire('key', { waitMs: 30_000 });
    await world.untilWaiting('key', 1);
    proxy.reset();
    await eventually(() => expect(waiter.health.status).toBe('down'));
    await holder.release();
    await waiting;
  });

  it('are replaced when a handshake hangs, also without a request', async () => {
    const proxy = await world.proxy();
    const service = world.service({ url: proxy.url, clientPackage });
    await service.start();
    const forgotten = proxy.forgetAfter(/./su);
    proxy.reset();
    await forgotten;
    expect(service.health.status).toBe('down');
    await eventually(() => expect(service.health.status).toBe('up'), { withinMs: 15_000 });
  });

  it.each(MODES)('leave a process that can exit, whatever the server does (%s)', async (mode) => {
    const { url } = world.server;
    const connection = { backend: 'redis', url, mode, clientPackage } as const;
    await using idle = await Holder.start(connection);
    await idle.acquire('key', { ttlMs: atLeastMs(1_000) });
    await idle.close();
    await expect(idle.exit()).resolves.toEqual({ code: 0, signal: null });

    await using unlucky = await Holder.start(connection);
    await unlucky.acquire('other', { ttlMs: atLeastMs(1_000) });
    await world.server.whileFrozen(async () => {
      await unlucky.close();
      await expect(unlucky.exit()).resolves.toEqual({ code: 0, signal: null });
      expect(unlucky.child.stderr).toBe('');
    });
  });

  it('R9: say so when the server may delete locks for want of memory', async () => {
    await world.operator.config('SET', 'maxmemory-policy', 'allkeys-lru');
    try {
      const service = world.service({ clientPackage });
      await service.withLock('key', () => undefined);
      await eventually(() => expect(service.health.detail).toMatch(/allkeys-lru.*noeviction/));
      expect(service.health.status).toBe('up');
    } finally {
      await world.operator.config('SET', 'maxmemory-policy', 'noeviction');
    }
  });
});
