import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { LockBackendError } from 'nestjs-distributed-lock/core';
import { failureOf } from '../../conformance/contract.js';
import { describeServers, SqlWorld } from './sql-world.js';

describeServers('health', (type) => {
  const world = new SqlWorld(type);
  beforeAll(() => world.start());
  afterEach(() => world.endTest());
  afterAll(() => world.stop());

  it('of sessions stays down while nobody can connect, whatever is released that was never granted', async () => {
    const service = world.service({ strategy: 'session', url: world.urlOf({ port: 1 }), patienceMs: 50 });
    const seen: string[] = [];
    service.backend.store.health?.onChange(({ status }) => seen.push(status));
    for (let round = 0; round < 30; round += 1) {
      const error = await failureOf(service.withLock(`unreachable-${round}`, () => 'work'));
      expect(error).toBeInstanceOf(LockBackendError);
      expect(service.health.status).toBe('down');
    }
    expect(seen).toEqual(['down']);
  });

  it('of rows stays up while the connections that are open serve, and says that there can be no more', async () => {
    const service = world.service({ strategy: 'row', url: world.proxiedUrl, patienceMs: 50 });
    const held = await service.acquire('first');
    const seen: string[] = [];
    service.backend.store.health?.onChange(({ status }) => seen.push(status));
    world.proxy.refuse();
    try {
      await expect(failureOf(service.tryAcquire('second'))).resolves.toBeInstanceOf(LockBackendError);
      expect(service.health.detail).toContain('the pool for row locks stays at 1 connections');
      await held.release();
      for (let round = 0; round < 30; round += 1) await service.withLock(`served-${round}`, () => 'work');
    } finally {
      await world.proxy.accept();
    }
    expect(service.health.status).toBe('up');
    expect(seen).toEqual([]);
    const locks = await Promise.all(['a', 'b'].map((key) => service.acquire(key)));
    await Promise.all(locks.map((lock) => lock.release()));
    expect(service.health.detail).toBeUndefined();
  });
});
