import { LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { RedisServer } from '../../servers/redis-server.js';
import { DeclaredKeysProxy } from '../../support/declared-keys-proxy.js';

describe('a server that wants all keys of a script declared', () => {
  let proxy: DeclaredKeysProxy;
  afterAll(() => proxy.stop());
  const server = RedisServer.shared();
  beforeAll(async () => {
    proxy = await DeclaredKeysProxy.start(server.port);
  });

  it('refuses the first call, and gets the names with all others', async () => {
    await using locks = new LockService(redis({ url: proxy.url }));
    await using other = new LockService(redis({ url: proxy.url }));
    await locks.start();
    const lock = await locks.acquire('k');
    expect(proxy.refused).toBeGreaterThan(0);
    const refused = proxy.refused;
    await expect(locks.look('k')).resolves.toMatchObject({ holder: { pid: process.pid } });
    await expect(locks.tryAcquire('shared', { mode: 'shared' })).resolves.not.toBeNull();
    const waiting = other.acquire('k', { waitMs: 10_000 });
    await expect(other.tryAcquire('k')).resolves.toBeNull();
    await lock.release();
    await (await waiting).release();
    // The other service has asked once more in vain, for all of its calls together.
    expect(proxy.refused - refused).toBeLessThanOrEqual(2);
    expect(locks.health).toEqual({ status: 'up' });
  });
});
