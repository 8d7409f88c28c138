import { type BackendHealth, type LockHandle, LockLostError, LockService } from 'nestjs-distributed-lock/core';
import { aborted } from '../conformance/contract.js';
import { warningsDuring } from '../support/node-warnings.js';
import { ServiceWorld } from './service-world.js';

describe('loss', () => {
  let world = new ServiceWorld();
  let { clock, backend, locks } = world;
  beforeEach(() => {
    world = new ServiceWorld();
    ({ clock, backend, locks } = world);
  });
  afterEach(() => world.locks.close());

  it('aborts the signal with the reason, and lets the next one in', async () => {
    const lock = await locks.acquire('k');
    const { signal } = lock;
    const next = locks.acquire('k');
    backend.revoke('k');
    expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'revoked', key: 'k' });
    expect([lock.isHeld, lock.state]).toEqual([false, 'lost']);
    expect(() => lock.throwIfLost()).toThrow(LockLostError);
    const other = await next;
    await lock.release();
    expect([lock.state, other.isHeld]).toEqual(['released', true]);
    await other.release();
  });

  it('is told to any number of listeners, without a warning of Node', async () => {
    const lock = await locks.acquire('one');
    const lockSet = await locks.acquireAll(['two', 'three']);
    const term = await new Promise<LockHandle>((resolve) => {
      locks.lead('chief', (leading) => {
        resolve(leading);
        return aborted(leading.signal);
      });
    });
    let toldCount = 0;
    const onAbort = (): void => void (toldCount += 1);
    const warnings = await warningsDuring(async () => {
      for (const { signal } of [lock, lockSet, term])
        for (let i = 0; i < 12; i += 1) signal.addEventListener('abort', () => onAbort());
    });
    expect(warnings).toEqual([]);
    for (const key of ['one', 'two', 'chief']) backend.revoke(key);
    expect(toldCount).toBe(36);
    await lockSet.release();
  });

  it('is no state for detached work to go on in, nor is the release', async () => {
    const [lost, released] = [await locks.acquire('lost'), await locks.acquire('released')];
    lost.assertHeld();
    released.assertHeld();
    backend.revoke('lost');
    expect(() => lost.assertHeld()).toThrow(expect.objectContaining({ code: 'LOCK_LOST', reason: 'revoked' }));
    await Promise.all([lost.release(), released.release()]);
    for (const lock of [lost, released]) {
      expect(() => lock.assertHeld()).toThrow(expect.objectContaining({ code: 'LOCK_LOST', reason: 'released' }));
    }
  });

  it('is not feared for a lock that is never renewed because the connection broke', async () => {
    let report: (health: BackendHealth) => void = () => undefined;
    const onChange = (listener: typeof report): (() => void) => {
      report = listener;
      return () => undefined;
    };
    const told = Object.defineProperty(backend, 'health', { value: { current: { status: 'idle' }, onChange } });
    const service = new LockService(told, { clock });
    const [fixed, renewed] = [await service.acquire('fixed', { watchdog: false }), await service.acquire('renewed')];
    report({ status: 'down' });
    expect([fixed.state, renewed.state]).toEqual(['held', 'jeopardy']);
    report({ status: 'up' });
    await clock.advance(0);
    expect([fixed.state, renewed.state]).toEqual(['held', 'held']);
    await Promise.all([fixed.release(), renewed.release()]);
  });

  it('rejects withLock when the work outlived the lock, and keeps an error of the work', async () => {
    await expect(locks.withLock('k', () => backend.revoke('k'))).rejects.toThrow(LockLostError);
    const failing = locks.withLock('k', () => {
      backend.revoke('k');
      throw new Error('out of stock');
    });
    await expect(failing).rejects.toThrow('out of stock');
  });

  it('is seen at once after a stall, before any timer ran', async () => {
    const lock = await locks.acquire('k', { ttlMs: 1_000 });
    clock.stall(1_000);
    expect([lock.isHeld, lock.state]).toEqual([false, 'lost']);
    expect(lock.signal.reason).toMatchObject({ reason: 'expired' });
    await lock.release();
    expect(world.names).toContain('lost');
    expect(world.names).not.toContain('released');
  });

  it('ends a hung task after maxHoldMs, and frees the key', async () => {
    const lock = await locks.acquire('k', { maxHoldMs: 100 });
    await clock.advance(100);
    expect(lock.signal.reason).toMatchObject({ reason: 'max-hold' });
    expect(backend.held).toEqual([]);
  });

  it('comes after the TTL without a watchdog', async () => {
    const lock = await locks.acquire('k', { ttlMs: 1_000, watchdog: false });
    await clock.advance(1_000);
    expect(lock.state).toBe('lost');
  });

  it('does not come while renewals are answered', async () => {
    const lock = await locks.acquire('k', { ttlMs: 1_000 });
    await clock.advance(10_000);
    expect(lock.state).toBe('held');
    await lock.release();
  });
});
