import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  currentLock,
  LockDeadlockError,
  type LockHandle,
  LockLostError,
  type LockService,
  LockTimeoutError,
} from 'nestjs-distributed-lock/core';
import { type ManualClock, type TestLockBackend } from 'nestjs-distributed-lock/testing';
import { ServiceWorld } from './service-world.js';

describe('re-entrancy', () => {
  let world: ServiceWorld;
  let clock: ManualClock;
  let backend: TestLockBackend;
  let locks: LockService;

  beforeEach(() => {
    world = new ServiceWorld();
    ({ clock, backend, locks } = world);
  });
  afterEach(() => world.locks.close());

  it('lets the same call tree in again, also in parallel, and frees the key with the last', async () => {
    await locks.withLock('k', async (outer) => {
      const inner = await locks.acquire('k');
      expect(inner.fencingToken).toBe(outer.fencingToken);
      await Promise.all([1, 2].map(() => locks.withLock('k', async () => undefined)));
      await inner.release();
      expect(backend.held).toEqual(['k']);
    });
    expect(backend.held).toEqual([]);
  });

  it('keeps another call tree out', async () => {
    let outsider: Promise<LockHandle | null> = Promise.resolve(null);
    const attempt = new Promise<void>((resolve) => {
      outsider = new Promise<void>((go) => (start = go)).then(() => locks.tryAcquire('k')).finally(resolve);
    });
    await locks.withLock('k', async () => {
      start();
      await attempt;
    });
    await expect(outsider).resolves.toBeNull();
  });
  let start = (): void => undefined;

  it('refuses at once what would wait for itself', async () => {
    await locks.withLock('k', async () => {
      await expect(locks.acquire('k', { reentrant: false })).rejects.toThrow(LockDeadlockError);
      await expect(locks.tryAcquire('k', { reentrant: false })).resolves.toBeNull();
    });
    await locks.withLock('k', () => expect(locks.acquire('k')).rejects.toMatchObject({ held: ['k'], wanted: 'k' }), {
      reentrant: false,
    });
  });

  it('throws inside a hold that is lost', async () => {
    const work = locks.withLock('k', async () => {
      backend.revoke('k');
      await locks.acquire('k');
    });
    await expect(work).rejects.toThrow(LockLostError);
  });

  it('is over for what outlives the hold', async () => {
    let later: Promise<LockHandle> | undefined;
    let go = (): void => undefined;
    await locks.withLock('k', async () => {
      later = new Promise<void>((resolve) => (go = resolve)).then(() => locks.acquire('k'));
    });
    await backend.occupy('k');
    go();
    const refused = expect(later).rejects.toThrow(LockTimeoutError);
    await clock.advance(10_000);
    await refused;
  });

  it('shows the lock to what runs inside', async () => {
    expect(currentLock()).toBeUndefined();
    await locks.withLock('k', (lock) => expect(currentLock()).toBe(lock));
    const lock = await locks.acquire('k');
    expect(lock.run(currentLock)).toBe(lock);
    await lock.release();
  });
});
