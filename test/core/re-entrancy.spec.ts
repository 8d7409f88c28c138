import {
  currentLock,
  currentLocks,
  LockDeadlockError,
  type LockHandle,
  LockLostError,
  LockTimeoutError,
} from 'nestjs-distributed-lock/core';
import { jest } from '@jest/globals';
import { failureOf, Gate } from '../support/index.js';
import { ServiceWorld } from './service-world.js';

const AGAIN = { reentrant: true };

describe('re-entrancy', () => {
  let world = new ServiceWorld();
  let { clock, backend, locks } = world;
  beforeEach(() => {
    world = new ServiceWorld();
    ({ clock, backend, locks } = world);
  });
  afterEach(() => world.locks.close());

  it('lets the same call tree in again, also in parallel, and frees the key with the last', async () => {
    const work = async (outer: LockHandle): Promise<void> => {
      const inner = await locks.acquire('k', AGAIN);
      expect(inner.fencingToken).toBe(outer.fencingToken);
      await Promise.all([1, 2].map(() => locks.withLock('k', async () => undefined, AGAIN)));
      await inner.release();
      expect(backend.held).toEqual(['k']);
    };
    await locks.withLock('k', work, AGAIN);
    expect(backend.held).toEqual([]);
  });

  it('goes eight deep, and through methods that call each other', async () => {
    const descend = (depth: number): Promise<number> =>
      locks.withLock('k', () => (depth === 0 ? currentLocks().length : descend(depth - 1)), AGAIN);
    await expect(descend(7)).resolves.toBe(8);
    const isEven = (n: number): Promise<boolean> => locks.withLock('k', () => n === 0 || isOdd(n - 1), AGAIN);
    const isOdd = (n: number): Promise<boolean> => locks.withLock('k', () => n !== 0 && isEven(n - 1), AGAIN);
    await expect(isEven(10)).resolves.toBe(true);
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

  it.each([
    [undefined, undefined, 'neither of the two has reentrant: true'],
    [AGAIN, undefined, 'this call does not ask for re-entry'],
    [undefined, AGAIN, 'that lock does not allow re-entry'],
  ])('is refused at once where not both ask for it: %j, %j', async (outer, inner, which) => {
    const error = await locks.withLock('k', () => failureOf(locks.acquire('k', inner)), outer);
    expect(error).toBeInstanceOf(LockDeadlockError);
    expect(error).toMatchObject({ held: ['k'], wanted: 'k', message: expect.stringContaining(which) });
    for (const cure of ['reentrant: true to both', 'runDetached(']) expect(String(error)).toContain(cure);
    const busy = await locks.withLock('k', () => failureOf(locks.acquire('k', { ...inner, waitMs: 0 })), outer);
    expect(busy).toMatchObject({ code: 'LOCK_TIMEOUT', message: expect.stringContaining('runDetached(') });
  });

  it('warns once for each class of keys that are skipped for this reason', async () => {
    const warnings: string[] = [];
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation((text) => void warnings.push(String(text)));
    try {
      for (const key of ['skipped_1', 'skipped_2', 'other_3'])
        await locks.withLock(key, () => expect(locks.tryWithLock(key, () => 'in')).resolves.toBeUndefined());
    } finally {
      warn.mockRestore();
    }
    expect(warnings).toEqual([expect.stringContaining('"skipped_1"'), expect.stringContaining('"other_3"')]);
  });

  it('is over when the outermost work has ended: whoever comes later asks the server, and the lock tells of it', async () => {
    const warnings: string[] = [];
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation((text) => void warnings.push(String(text)));
    const [gate, late] = [new Gate(), new Gate()];
    const order: string[] = [];
    let started: Promise<void>[] = [];
    const enter = async (name: string, until: Promise<void>): Promise<void> => {
      await until;
      await locks.withLock('k', () => void order.push(name), { ...AGAIN, waitMs: 60_000 });
    };
    await locks.withLock(
      'k',
      () => {
        started = [locks.withLock('k', () => gate.opened, AGAIN), enter('job that was started inside', late.opened)];
      },
      AGAIN,
    );
    warn.mockRestore();
    expect(warnings).toEqual([expect.stringContaining('has ended while calls that it started')]);
    const stranger = enter('stranger', Promise.resolve());
    await clock.advance(1);
    late.open();
    await clock.advance(1);
    expect(order).toEqual([]);
    gate.open();
    await Promise.all([...started, stranger]);
    expect(order).toEqual(['stranger', 'job that was started inside']);
  });

  it('tells a nested call of a branch that was not awaited why it waits in vain', async () => {
    const ended = new Gate();
    let branch: Promise<unknown[]> = Promise.resolve([]);
    const nest = async (): Promise<unknown[]> => {
      await ended.opened;
      const inTime = failureOf(locks.acquire('k', { ...AGAIN, waitMs: 500 }));
      await clock.advance(500);
      return [await inTime, await failureOf(locks.acquire('k', { ...AGAIN, waitMs: Infinity }))];
    };
    await locks.withLock('k', () => void (branch = locks.withLock('k', nest, AGAIN)), AGAIN);
    ended.open();
    const reason = expect.stringContaining('were not awaited there');
    expect(await branch).toMatchObject([
      { code: 'LOCK_TIMEOUT', message: reason },
      { code: 'LOCK_DEADLOCK', message: reason },
    ]);
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
      locks.withLock(
        key,
        () => {
          depths.push(currentLocks().length);
          if (left > 0) next = new Promise((resolve) => setImmediate(() => resolve(tick(key, left - 1))));
        },
        AGAIN,
      );
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
    await locks.withLock(
      'k',
      async () => {
        await tick('k', 50);
        await last();
      },
      AGAIN,
    );
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
