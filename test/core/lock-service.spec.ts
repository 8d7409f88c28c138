import { describe, expect, it } from '@jest/globals';
import { LockService, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { memory } from 'nestjs-distributed-lock/memory';

describe('LockService', () => {
  it('lets one caller in at a time, in the order of arrival', async () => {
    const locks = new LockService(memory());
    const order: number[] = [];
    let inside = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        locks.withLock('k', async () => {
          most = Math.max(most, ++inside);
          await new Promise(setImmediate);
          order.push(i);
          inside -= 1;
        }),
      ),
    );
    expect(most).toBe(1);
    expect(order).toEqual(Array.from({ length: 50 }, (_, i) => i));
    await locks.close();
  });

  it('names the holder in a time-out', async () => {
    const locks = new LockService(memory(), { label: 'api-2' });
    await using _lock = await locks.acquire('sale');
    await expect(locks.acquire('sale', { waitMs: 20 })).rejects.toThrow(
      new LockTimeoutError('sale', { waitMs: 20, holder: { host: '', label: 'api-2', pid: process.pid } }),
    );
    await expect(locks.tryAcquire('sale')).resolves.toBeNull();
  });
});
