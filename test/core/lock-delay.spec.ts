import { type LeaseStore, LockConfigurationError, LockService, LockBackend } from 'nestjs-distributed-lock/core';
import { ManualClock, TestLockBackend } from 'nestjs-distributed-lock/testing';
import { storeLike } from './store-like.js';

describe('the lock-delay', () => {
  let clock: ManualClock;
  let backend: TestLockBackend;
  let locks: LockService;
  const delayed = { ttlMs: 1_000, lockDelayMs: 5_000 };

  beforeEach(() => {
    clock = new ManualClock();
    backend = new TestLockBackend({ clock });
    locks = new LockService(backend, { clock });
  });
  afterEach(() => locks.close());

  it('is asked of the server on top of the TTL, and is no part of what the holder trusts', async () => {
    const lock = await locks.acquire('k', delayed);
    backend.breakDown();
    await clock.advance(989);
    expect(lock.isHeld).toBe(false);
    backend.repair();
    await clock.advance(4_900);
    expect(backend.held).toEqual(['k']);
    await clock.advance(200);
    expect(backend.held).toEqual([]);
  });

  it('passes after maxHoldMs too, since the hung task may have sent something, with callers of this process waiting', async () => {
    const lock = await locks.acquire('k', { ...delayed, maxHoldMs: 10_000 });
    const next = locks.acquire('k', { waitMs: 60_000 });
    await clock.advance(10_000);
    expect(lock.signal.reason).toMatchObject({ reason: 'max-hold' });
    await clock.advance(4_900);
    await expect(locks.tryAcquire('k')).resolves.toBeNull();
    await clock.advance(1_500);
    expect((await next).isHeld).toBe(true);
  });

  it('ends with a release at once, and with a shutdown', async () => {
    await (await locks.acquire('k', delayed)).release();
    expect(backend.held).toEqual([]);
    const lost = await locks.acquire('lost', { ...delayed, maxHoldMs: 100 });
    await locks.acquire('held', delayed);
    await clock.advance(100);
    expect([lost.state, backend.held]).toEqual(['lost', ['lost', 'held']]);
    await locks.close();
    expect(backend.held).toEqual([]);
  });

  it('is kept when a lease is handed on: only to callers who want the same', async () => {
    const from: string[] = [];
    const service = new LockService(backend, { clock, observers: [{ acquired: (event) => from.push(event.from) }] });
    const first = await service.acquire('k', delayed);
    const waiting = [delayed, { ttlMs: 1_000 }, delayed].map((options) => service.acquire('k', options));
    await first.release();
    for (const next of waiting) await (await next).release();
    expect(from).toEqual(['backend', 'hand-off', 'backend', 'backend']);
  });

  it('is refused where it can never work', async () => {
    await expect(locks.acquire('k', { lockDelayMs: -1 })).rejects.toThrow('lockDelayMs must be a number from 0');
    const ends = storeLike(backend, { name: 'ends', traits: { endsWith: 'connection' } });
    expect(() => new LockService(ends, { defaults: delayed })).toThrow(LockConfigurationError);
    const limited = new LockService(
      storeLike(backend, { name: 'ends', traits: { ttlLimits: { minMs: 10, maxMs: 31_000 } } }),
    );
    await expect(limited.acquire('k', { ...delayed, ttlMs: 30_000 })).rejects.toThrow(
      'lockDelayMs must be from 0 to 1000 with ends',
    );
  });

  it('is refused where it is no less than the session whose part it would be, and the key is free again', async () => {
    const tryAcquire: LeaseStore['tryAcquire'] = async (key, owner, ttlMs, metadata) => ({
      ...(await backend.tryAcquire(key, owner, ttlMs, metadata)),
      ttlMs: 3_000,
    });
    const service = new LockService(
      storeLike(backend, { name: 'session', traits: { endsWith: 'session' }, tryAcquire }),
      {
        clock,
      },
    );
    await expect(service.acquire('k', delayed)).rejects.toMatchObject({ option: 'lockDelayMs' });
    expect(backend.held).toEqual([]);
    const lock = await service.acquire('k', { lockDelayMs: 2_000 });
    expect(lock.isHeld).toBe(true);
    await lock.release();
  });

  it('lets nobody in whose answer came too late for what is left of the lease', async () => {
    const tryAcquire: LeaseStore['tryAcquire'] = async (key, owner, ttlMs, metadata) => {
      const attempt = await backend.tryAcquire(key, owner, ttlMs, metadata);
      clock.stall(1_500);
      return attempt;
    };
    const service = new LockService(
      new LockBackend(storeLike(backend, { name: 'late', tryAcquire }), { patienceMs: 0 }),
      { clock },
    );
    await expect(service.acquire('k', delayed)).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
    expect(backend.held).toEqual([]);
  });
});
