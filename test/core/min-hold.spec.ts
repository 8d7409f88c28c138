import { jest } from '@jest/globals';
import { oncePer } from 'nestjs-distributed-lock';
import { LockConfigurationError, LockService } from 'nestjs-distributed-lock/core';
import { ManualClock, TestLockBackend } from 'nestjs-distributed-lock/testing';
import { storeLike } from './store-like.js';

describe('the shortest hold', () => {
  let clock: ManualClock;
  let backend: TestLockBackend;
  let locks: LockService;
  const kept = { ttlMs: 1_000, minHoldMs: 5_000 };

  beforeEach(() => {
    clock = new ManualClock();
    backend = new TestLockBackend({ clock });
    locks = new LockService(backend, { clock });
  });
  afterEach(() => locks.close());

  it('keeps the key closed from the acquisition on, after the release too, and wakes who waits then', async () => {
    const lock = await locks.acquire('k', kept);
    await clock.advance(2_000);
    await lock.release();
    const next = locks.acquire('k', { waitMs: 60_000 });
    await clock.advance(2_900);
    await expect(locks.tryAcquire('k')).resolves.toBeNull();
    expect(backend.held).toEqual(['k']);
    await clock.advance(200);
    expect((await next).isHeld).toBe(true);
    expect((await next).fencingToken).toBeGreaterThan(lock.fencingToken);
  });

  it('is over when the work took longer: the release frees the key at once', async () => {
    const lock = await locks.acquire('k', kept);
    await clock.advance(5_100);
    expect(lock.isHeld).toBe(true);
    await lock.release();
    expect(backend.held).toEqual([]);
  });

  it('keeps the key after work that threw, and after maxHoldMs', async () => {
    await expect(locks.withLock('threw', () => Promise.reject(new Error('no')), kept)).rejects.toThrow('no');
    const hung = await locks.acquire('hung', { ...kept, maxHoldMs: 100 });
    await clock.advance(4_900);
    expect([hung.state, backend.held]).toEqual(['lost', ['threw', 'hung']]);
    await clock.advance(200);
    expect(backend.held).toEqual([]);
  });

  it('is kept by the server alone after a shutdown, and after a crash', async () => {
    await (await locks.acquire('released', kept)).release();
    await locks.acquire('held', kept);
    await locks.close();
    const dead = new LockService(backend, { clock });
    const crashed = await dead.acquire('crashed', kept);
    backend.breakDown();
    await clock.advance(1_000);
    expect(crashed.isHeld).toBe(false);
    await clock.advance(3_900);
    expect(backend.held).toEqual(['released', 'held', 'crashed']);
    await clock.advance(1_000);
    expect(backend.held).toEqual([]);
  });

  it('holds no backend open after a shutdown under work that goes on', async () => {
    const closed = jest.spyOn(backend, 'close');
    void locks
      .withLock('hung', () => new Promise(() => undefined), { ...kept, minHoldMs: 600_000 })
      .catch(() => undefined);
    await clock.advance(0);
    const down = locks.shutdown(100);
    await clock.advance(100);
    await down;
    await clock.advance(1_000);
    expect(closed).toHaveBeenCalledTimes(1);
    expect(backend.held).toEqual(['hung']);
  });

  it('is trusted and renewed by ttlMs all the same', async () => {
    const lock = await locks.acquire('k', kept);
    backend.breakDown();
    await clock.advance(700);
    expect(lock.state).toBe('jeopardy');
    await clock.advance(300);
    expect(lock.state).toBe('lost');
    backend.repair();
  });

  it('is never handed on, nor is a lease to somebody who asks for it', async () => {
    for (const options of [kept, { ttlMs: 1_000 }]) {
      const first = await locks.acquire('k', options);
      const next = locks.acquire('k', { ...kept, waitMs: 60_000 });
      await first.release();
      await clock.advance(5_100);
      expect((await next).fencingToken - first.fencingToken).toBeGreaterThanOrEqual(1n << 11n);
      await (await next).release();
      await clock.advance(5_100);
    }
  });

  it('is that of the outermost of re-entered holds', async () => {
    const again = { reentrant: true };
    const enterAgain = () => locks.withLock('k', () => undefined, { minHoldMs: 60_000, ...again });
    await locks.withLock('k', enterAgain, { ...kept, ...again });
    expect(backend.held).toEqual(['k']);
    await clock.advance(5_100);
    expect(backend.held).toEqual([]);
  });

  it('leaves nothing of a caller that gave up', async () => {
    const abort = new AbortController();
    const given = locks.acquire('k', { ...kept, signal: abort.signal });
    abort.abort(new Error('enough'));
    await expect(given).rejects.toThrow('enough');
    await clock.advance(100);
    expect(backend.held).toEqual([]);
  });

  it('is refused where it can never work', async () => {
    for (const minHoldMs of [-1, 0.5, Infinity]) {
      await expect(locks.acquire('k', { minHoldMs })).rejects.toThrow(/minHoldMs must be a whole number .* it was/u);
    }
    const ends = storeLike(backend, { name: 'ends', traits: { endsWith: 'connection' } });
    expect(() => new LockService(ends, { defaults: kept })).toThrow('ends can keep no minHoldMs');
    const limited = new LockService(
      storeLike(backend, { name: 'short', traits: { ttlLimits: { minMs: 10, maxMs: 31_000 } } }),
    );
    await expect(limited.acquire('k', { minHoldMs: 32_000 })).rejects.toThrow('from 0 to 31000 with short');
  });

  it('is half the period of a job that runs once per period', () => {
    expect(oncePer(60_001)).toEqual({ onBusy: 'skip', minHoldMs: 30_000, ttlMs: 30_000 });
    expect(oncePer(86_400_000)).toEqual({ onBusy: 'skip', minHoldMs: 43_200_000, ttlMs: 30_000 });
    expect(oncePer(10_000)).toEqual({ onBusy: 'skip', minHoldMs: 5_000, ttlMs: 5_000 });
    expect(oncePer(1_000)).toEqual({ onBusy: 'skip', minHoldMs: 500, ttlMs: 2_000 });
    expect(() => oncePer(1.5)).toThrow(LockConfigurationError);
  });
});
