import {
  currentLock,
  currentLocks,
  LockDeadlockError,
  type LockHandle,
  LockLostError,
  LockTimeoutError,
} from 'nestjs-distributed-lock/core';
import { ServiceWorld } from './service-world.js';

describe('re-entrancy', () => {
  let world = new ServiceWorld();
  let { clock, backend, locks } = world;
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

  it('does not grow with work that starts itself anew from inside its lock', async () => {
    const depths: number[] = [];
    const tick = (key: string, left: number): Promise<void> =>
      locks.withLock(key, () => {
        depths.push(currentLocks().length);
        if (left > 0) next = new Promise((resolve) => setImmediate(() => resolve(tick(key, left - 1))));
      });
    const last = async (): Promise<void> => {
      for (let awaited: unknown; awaited !== next;) {
        awaited = next;
        await next;
      }
    };
    await tick('k', 50);
    await last();
    expect(Math.max(...depths)).toBe(1);
    // Nor does it under a lock that stays, entered again and again.
    depths.length = 0;
    await locks.withLock('k', async () => {
      await tick('k', 50);
      await last();
    });
    expect(Math.max(...depths)).toBe(2);
    // Nor when a lock begins before the one it was started from has ended.
    depths.length = 0;
    const overlap = async (place: number, former?: LockHandle): Promise<void> => {
      const lock = await locks.acquire(`k${place}`);
      await lock.run(async () => {
        depths.push(currentLocks().length);
        await former?.release();
        await (place < 50 ? overlap(place + 1, lock) : lock.release());
      });
    };
    await overlap(0);
    expect(Math.max(...depths)).toBe(2);
  });
  let next: Promise<void> = Promise.resolve();

  it('shows the lock to what runs inside', async () => {
    expect(currentLock()).toBeUndefined();
    await locks.withLock('k', (lock) => expect(currentLock()).toBe(lock));
    const lock = await locks.acquire('k');
    expect(lock.run(currentLock)).toBe(lock);
    await lock.release();
  });
});
