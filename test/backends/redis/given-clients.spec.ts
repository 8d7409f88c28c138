import { Redis } from 'ioredis';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { redlock } from 'nestjs-distributed-lock/redlock';
import { eventually, RedisServer } from '../../support/index.js';
import { warningsDuring } from '../../support/node-warnings.js';
import { describeRedis } from './redis-world.js';

describeRedis('clients that applications share with the locks', (world) => {
  /** For longer than the client's own time-out, so that no late answer comes through. */
  const silenceOf = async (servers: readonly RedisServer[], work: () => Promise<unknown>): Promise<void> => {
    for (const server of servers) server.freeze();
    try {
      await work();
      await new Promise((resolve) => setTimeout(resolve, 2_500));
    } finally {
      for (const server of servers) server.thaw();
    }
  };

  it('serve again after a silence that their commandTimeout has given up', async () => {
    const client = world.disconnecting(new Redis(world.server.url, { commandTimeout: 2_000 }));
    const locks = world.closing(new LockService(redis({ client, patienceMs: 500 })));
    const lock = await locks.acquire('held', { ttlMs: 20_000 });
    await silenceOf([world.server], () => expect(locks.acquire('key', { waitMs: 500 })).rejects.toThrow('no answer'));
    const thawedAt = performance.now();
    await eventually(async () => expect(await locks.withLock('key', () => 'in', { waitMs: 0 })).toBe('in'));
    process.stdout.write(`commandTimeout: locks ${Math.round(performance.now() - thawedAt)} ms after the thaw\n`);
    await eventually(() => expect([lock.state, locks.health.status]).toEqual(['held', 'up']));
    await lock.release();
  });

  it('serve Redlock again, too, when two of three nodes were silent', async () => {
    const servers = [world.server, await RedisServer.start(), await RedisServer.start()];
    try {
      const clients = servers.map(({ url }) => world.disconnecting(new Redis(url, { commandTimeout: 2_000 })));
      const locks = world.closing(new LockService(redlock({ clients })));
      await locks.withLock('key', () => undefined, { waitMs: 5_000 });
      await silenceOf(servers.slice(1), () =>
        expect(locks.acquire('key', { waitMs: 500 })).rejects.toThrow(/no quorum|no answer/u),
      );
      await eventually(async () => expect(await locks.withLock('other', () => 'in', { waitMs: 0 })).toBe('in'));
    } finally {
      await world.endTest();
      await Promise.all(servers.slice(1).map((server) => server.stop()));
    }
  });

  it('wake waiters by a channel that has no key prefix', async () => {
    const [holders, waiters] = [1, 2].map(() => {
      const client = world.disconnecting(new Redis(world.server.url, { keyPrefix: 'app:' }));
      return world.closing(new LockService(redis({ client })));
    });
    const lock = await holders?.acquire('key');
    const waiting = waiters?.acquire('key', { waitMs: 10_000 });
    await eventually(async () => expect(await world.operator.pubsub('CHANNELS', 'lock:*')).not.toEqual([]));
    await eventually(async () =>
      expect(await world.operator.hvals('app:lock:{key}:w')).toContainEqual(expect.stringMatching(/^lock:/u)),
    );
    expect(waiters?.health).toEqual({ status: 'up' });
    await lock?.release();
    await (await waiting)?.release();
  });

  it('have one listener of each event, however many services share them', async () => {
    const client = world.disconnecting(new Redis(world.server.url));
    const before = client.listenerCount('close');
    const useThirtyServices = async () => {
      const services = Array.from({ length: 30 }, () => new LockService(redis({ client })));
      for (const [i, service] of services.entries()) await service.withLock(`key-${i}`, () => undefined);
      expect(client.listenerCount('close') - before).toBe(1);
      await Promise.all(services.map((service) => service.close()));
    };
    expect(await warningsDuring(useThirtyServices)).toEqual([]);
    expect(client.listenerCount('close')).toBe(before);
  });
});
