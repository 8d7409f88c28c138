import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisClient } from 'nestjs-distributed-lock/redis';
import { createOwnClientOptions, withConnectionCheck } from '../../../lib/backends/redis/clients/ioredis.js';
import { askRedis, eventually } from '../../support/index.js';
import { Listener } from '../../support/stand-in.js';
import { RedisWorld } from './redis-world.js';

describe('what counts as a connection', () => {
  const world = RedisWorld.shared({ args: ['--busy-reply-threshold', '100'] });

  const locksIn = (db: number): LockService =>
    world.closing(new LockService(redis({ host: '127.0.0.1', port: world.server.port, db })));

  it('is none in another database, because the server was busy when it was to choose one', async () => {
    await using lock = await locksIn(3).acquire('key', { ttlMs: 20_000 });
    const spoiler = world.disconnecting(new Redis(world.server.url));
    const script = spoiler.eval('while true do end', 0).catch(() => undefined);
    const { port } = world.server;
    await eventually(async () => expect(await askRedis(port, 'PING')).toContain('BUSY'));
    const asked = locksIn(3)
      .acquire('key', { waitMs: 1_500 })
      .catch((error: unknown) => error);
    // For longer than it takes to connect.
    await new Promise((resolve) => setTimeout(resolve, 500));
    await askRedis(port, 'SCRIPT KILL');
    await script;
    expect(await asked).toBeInstanceOf(Error);
    expect(lock.isHeld).toBe(true);
    await expect(world.operator.keys('*')).resolves.toEqual([]);
  });

  it('is none in database 0 for one that the server does not have', async () => {
    const locks = locksIn(99);
    await expect(locks.tryAcquire('key')).rejects.toThrow('DB index is out of range');
    expect(locks.health).toMatchObject({ status: 'down', detail: expect.stringContaining('out of range') });
    await expect(world.operator.keys('*')).resolves.toEqual([]);
  });

  it('is one in database 0 without the right to choose it', async () => {
    await world.operator.acl('SETUSER', 'app', 'reset', 'on', '>right', '~*', '&*', '+@all', '-select');
    const locks = world.closing(new LockService(redis({ url: world.server.url.replace('//', '//app:right@') })));
    await expect(locks.withLock('key', () => 'in')).resolves.toBe('in');
  });

  it.each<[string, (port: number) => RedisClient]>([
    ['6', (port) => new Redis({ ...createOwnClientOptions(), port })],
    ['5', (port) => new Redis5({ ...createOwnClientOptions(), port })],
  ])('is none that ended during its handshake, and another one is made (ioredis %s)', async (_version, make) => {
    let isSlammed = true;
    const door = await Listener.start((client, listener) => {
      if (isSlammed) client.once('data', () => client.destroy());
      else listener.forward(client, world.server.port);
    });
    const client = world.disconnecting(withConnectionCheck(make(door.port)));
    let [closed, ready] = [0, 0];
    client.on('error', () => undefined);
    client.on('close', () => (closed += 1));
    client.on('ready', () => (ready += 1));
    client.connect().catch(() => undefined);
    await eventually(() => expect(closed).toBeGreaterThanOrEqual(2));
    expect(ready).toBe(0);
    isSlammed = false;
    await eventually(async () => expect(await client.call('GET', 'key')).toBeNull());
    client.disconnect();
    await door.close();
  });
});
