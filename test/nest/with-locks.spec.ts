import { describe, expect, it } from '@jest/globals';
import type { AcquireOptions, LockHandle, LockService } from 'nestjs-distributed-lock';
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
    return work({ throwIfLost } as LockHandle);
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
});
