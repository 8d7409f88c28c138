import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisMode, type RedisOptions } from 'nestjs-distributed-lock/redis';
import { freePort } from '../../servers/free-port.js';
import { RedisCluster } from '../../servers/redis-cluster.js';
import { eventually } from '../../support/eventually.js';
import { RedisWorld } from './redis-world.js';

const MODES: readonly RedisMode[] = ['queue', 'plain', 'getset'];

describe('the start of a service on Redis', () => {
  let world: RedisWorld;
  beforeAll(async () => {
    world = await RedisWorld.start();
  });
  afterEach(() => world.endTest());
  afterAll(() => world.stop());

  const started = async (options: RedisOptions): Promise<LockService> => {
    const service = world.closing(new LockService(redis(options)));
    await service.start();
    return service;
  };

  it.each(MODES)('connects, and leaves nothing on the server (%s)', async (mode) => {
    const service = await started({ url: world.server.url, mode });
    expect(service.health).toEqual({ status: 'up' });
    await expect(world.operator.keys('*')).resolves.toEqual([]);
  });

  it('shows in the health a server that is not there, and again when it is', async () => {
    const port = await freePort();
    const service = await started({ url: `redis://127.0.0.1:${port}` });
    expect(service.health).toMatchObject({ status: 'down', detail: expect.stringContaining('ECONNREFUSED') });
  });

  it('shows in the health a server that says nothing, after the time-out of a command', async () => {
    world.server.freeze();
    try {
      const service = await started({ url: world.server.url, requestTimeoutMs: 200 });
      expect(service.health).toMatchObject({
        status: 'down',
        detail: expect.stringContaining('no answer within 200 ms'),
      });
    } finally {
      world.server.thaw();
    }
  });

  it.each(MODES)('shows in the health a wrong password, and rights that are missing (%s)', async (mode) => {
    await world.operator.acl('SETUSER', 'app', 'reset', 'on', '>right', '~other:*', '+@all');
    const urlOf = (password: string): string => world.server.url.replace('//', `//app:${password}@`);
    const stranger = await started({ url: urlOf('wrong'), mode });
    expect(stranger.health).toMatchObject({ status: 'down', detail: expect.stringContaining('WRONGPASS') });
    const guest = await started({ url: urlOf('right'), mode });
    expect(guest.health).toMatchObject({ status: 'down', detail: expect.stringContaining('NOPERM') });
  });

  it('connects a given client that was to connect when it is first used', async () => {
    const client = world.disconnecting(new Redis(world.server.url, { lazyConnect: true }));
    const service = await started({ client });
    expect(service.health).toEqual({ status: 'up' });
  });

  it('finds the masters of a cluster, or shows in the health that nobody answers', async () => {
    const cluster = await RedisCluster.start({ replicas: 0 });
    try {
      expect((await started({ cluster: cluster.addresses })).health).toMatchObject({ status: 'up' });
    } finally {
      await cluster.stop();
    }
    const lost = await started({ cluster: cluster.addresses });
    await eventually(() =>
      expect(lost.health).toMatchObject({
        status: 'down',
        detail: expect.stringContaining('no node of the cluster answers'),
      }),
    );
  });
});
