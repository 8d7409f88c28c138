import { describe, expect, it } from '@jest/globals';
import { type AcquireOptions, type LockHandle, LockService } from 'nestjs-distributed-lock';
import { TestLockBackend } from 'nestjs-distributed-lock/testing';
import { withLocks } from '../../lib/nest/locked-method.js';

type Work = (lock: LockHandle) => Promise<unknown>;

/** A service whose locks take `slowMs` of the only thread to get, and are lost as soon as the next one is there. */
function slow(slowMs: number, waits: unknown[], lost: Error | undefined): LockService {
  const withLock = (_key: string, work: Work, options: AcquireOptions): Promise<unknown> => {
    waits.push(options.waitMs);
    const until = performance.now() + slowMs;
    while (performance.now() < until);
    const throwIfLost = (): void => {
      if (lost) throw lost;
    };
    return work({ throwIfLost, forgo: () => undefined } as unknown as LockHandle);
  };
  return { withLock, defaults: { waitMs: 1_000 } } as unknown as LockService;
}

describe('withLocks', () => {
  it('has one deadline for all keys, the default one too', async () => {
    const waits: number[] = [];
    await withLocks(slow(5, waits, undefined), ['a', 'b', 'c'], async (locks) => locks.length, {});
    const [first = 0, second = 0, third = 0] = waits;
    expect(first).toBeLessThanOrEqual(1_000);
    expect(first).toBeGreaterThan(500);
    expect(first - second).toBeGreaterThanOrEqual(5);
    expect(second - third).toBeGreaterThanOrEqual(5);
  });

  it('waits for ever where it may', async () => {
    const waits: number[] = [];
    await withLocks(slow(0, waits, undefined), ['a', 'b'], async () => undefined, { waitMs: Infinity });
    expect(waits).toEqual([Infinity, Infinity]);
  });

  it('does not begin with a lock that was lost while it waited for another', async () => {
    const lost = new Error('lost');
    let began = false;
    const work = async (): Promise<void> => void (began = true);
    await expect((async () => withLocks(slow(0, [], lost), ['a', 'b'], work, {}))()).rejects.toBe(lost);
    expect(began).toBe(false);
  });

  it('leaves no key closed where one was busy, so that the work never began', async () => {
    const backend = new TestLockBackend();
    await using locks = new LockService(backend);
    await using other = new LockService(backend);
    const busy = await other.acquire('b');
    const kept = { waitMs: 0, minHoldMs: 60_000 };
    await expect(withLocks(locks, ['a', 'b'], async () => undefined, kept)).rejects.toThrow('"b"');
    expect(backend.held).toEqual(['b']);
    await busy.release();
    await locks.withLock('a', () => withLocks(locks, ['a', 'b'], async () => undefined, { minHoldMs: 60_000 }));
    expect(backend.held).toEqual(['b']);
  });

  it('leaves the keys around it to the work that took them', async () => {
    const backend = new TestLockBackend();
    await using locks = new LockService(backend);
    await using other = new LockService(backend);
    await using _ = await other.acquire('b');
    const inside = (): Promise<unknown> => withLocks(locks, ['a', 'b'], async () => undefined, { waitMs: 0 });
    await expect(locks.withLock('a', inside, { minHoldMs: 60_000 })).rejects.toThrow('"b"');
    expect(backend.held).toEqual(['b', 'a']);
  });
});
