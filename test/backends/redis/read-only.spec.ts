import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisOptions } from 'nestjs-distributed-lock/redis';
import { askRedis } from '../../servers/ask-redis.js';
import { RedisServer } from '../../servers/redis-server.js';
import { eventually } from '../../support/eventually.js';
import { FaultProxy } from '../../support/fault-proxy.js';

const TTL_MS = 10_000;

/** A name that leads to the master, as those of managed servers do: a proxy whose target moves. */
describe('a master that has become a replica', () => {
  let first: RedisServer;
  let second: RedisServer;
  let name: FaultProxy;
  const closing: { close(): Promise<unknown> }[] = [];

  beforeAll(async () => {
    first = await RedisServer.start({ args: ['--repl-diskless-sync-delay', '0'] });
    second = await RedisServer.start({
      args: ['--replicaof', '127.0.0.1', String(first.port), '--repl-diskless-sync-delay', '0'],
    });
    await eventually(async () => expect(await askRedis(first.port, 'INFO replication')).toContain('state=online'));
    name = await FaultProxy.start({ port: first.port });
  });
  afterEach(async () => {
    await Promise.all(closing.splice(0).map((one) => one.close()));
  });
  afterAll(async () => {
    await name.close();
    await Promise.all([first.stop(), second.stop()]);
  });

  const servicesOf: [string, () => RedisOptions][] = [
    ['by url', () => ({ url: `redis://127.0.0.1:${name.port}` })],
    [
      'by a client that follows the manual of ioredis',
      () => {
        const reconnectOnError = ({ message }: Error): boolean => message.includes('READONLY');
        const client = new Redis(name.port, '127.0.0.1', { reconnectOnError });
        client.on('error', () => undefined);
        closing.push({ close: async () => client.disconnect() });
        return { client };
      },
    ],
  ];

  it.each(servicesOf)('is left, and none of ten locks is lost (%s)', async (how, options) => {
    const [from, to] = (await askRedis(first.port, 'INFO replication')).includes('role:master')
      ? [first, second]
      : [second, first];
    await eventually(async () => expect(await askRedis(from.port, 'INFO replication')).toContain('state=online'));
    const lost: string[] = [];
    const locks = new LockService(redis(options()), { observers: [{ lost: ({ key }) => void lost.push(key) }] });
    closing.unshift(locks);
    const held = await Promise.all(
      Array.from({ length: 10 }, (_, i) => locks.acquire(`${how}-${i}`, { ttlMs: TTL_MS })),
    );
    await askRedis(from.port, 'FAILOVER');
    await eventually(async () => expect(await askRedis(to.port, 'INFO replication')).toContain('role:master'), {
      withinMs: 20_000,
    });
    // New connections go to the new master; those that are open stay with the old one.
    name.redirect(to);
    const asked = await Promise.all(['a', 'b'].map((key) => locks.acquire(`${how}-${key}`, { waitMs: 10_000 })));
    await eventually(() => expect(held.map(({ state }) => state)).toEqual(held.map(() => 'held')), {
      withinMs: 20_000,
    });
    expect(lost).toEqual([]);
    await Promise.all([...held, ...asked].map((lock) => lock.release()));
  });

  it('is told once while it lasts, and without a warning, however many locks are held', async () => {
    const server = await RedisServer.start();
    const [warnings, told]: [string[], string[]] = [[], []];
    const onWarning = ({ name: kind }: Error): void => void warnings.push(kind);
    process.on('warning', onWarning);
    const healthChanged = ({ status }: { status: string }): void => void told.push(status);
    const locks = new LockService(redis({ url: server.url }), { observers: [{ healthChanged }] });
    try {
      const keys = Array.from({ length: 40 }, (_, i) => `key-${i}`);
      const held = await Promise.all(keys.map((key) => locks.acquire(key, { ttlMs: TTL_MS })));
      await askRedis(server.port, 'REPLICAOF 127.0.0.1 1');
      await new Promise((resolve) => setTimeout(resolve, TTL_MS / 2));
      expect(told).toEqual(['up', 'down']);
      await askRedis(server.port, 'REPLICAOF NO ONE');
      await eventually(() => expect(held.map(({ state }) => state)).toEqual(held.map(() => 'held')));
      await eventually(() => expect(told).toEqual(['up', 'down', 'up']));
      expect(warnings).toEqual([]);
    } finally {
      process.off('warning', onWarning);
      await locks.close();
      await server.stop();
    }
  });
});
