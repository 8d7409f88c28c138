import { setImmediate as nextTurn } from 'node:timers/promises';
import { type LockHandle, LockService } from 'nestjs-distributed-lock/core';
import { liveBytes } from '../../support/live-bytes.js';
import { timeLimitOf } from '../../support/machine.js';
import { describeRedis } from './redis-world.js';

const HELD = 1_000;
const TTL_MS = 5_000;
/**
 * While a burst starts nobody can renew anything, and collections of garbage make a great one take twice as long for each: on a
 * machine that is busy with others a TTL has to be longer.
 */
const TTL_STARTS = 6;
/** For a burst that waits, and for one that is held. */
const MAX_MB = 300;
const WAIT_MS = timeLimitOf(180_000);

describeRedis('a burst of acquisitions', (world) => {
  it.each([3_000, 10_000, 30_000, 100_000])(
    'of %i in one turn costs none of 1,000 locks that are held, and the connection stays',
    async (count) => {
      const seen = { lost: 0, jeopardy: 0, health: [] as string[] };
      const locks = world.closing(
        new LockService(world.backend(), {
          observers: [
            {
              lost: () => void (seen.lost += 1),
              jeopardy: () => void (seen.jeopardy += 1),
              healthChanged: ({ status }) => seen.health.push(status),
            },
          ],
        }),
      );
      const ttlMs = Math.max(TTL_MS, TTL_STARTS * count * (await startMs(locks)));
      const held = await all(HELD, (i) => locks.acquire(`held-${i}`, { ttlMs }));
      const before = liveBytes();
      const pulse = feelPulse();
      const failures = new Map<string, number>();
      const since = performance.now();
      const acquiring = all(count, (i) =>
        locks.acquire(`burst-${i}`, { waitMs: WAIT_MS }).catch((error: unknown) => {
          const message = String(error).replaceAll(/burst-\d+/g, 'burst');
          failures.set(message, (failures.get(message) ?? 0) + 1);
          return undefined;
        }),
      );
      const startedMs = performance.now() - since;
      const waitingMb = (liveBytes() - before) / 2 ** 20;
      const got = (await acquiring).filter((lock): lock is LockHandle => lock !== undefined);
      const tookMs = performance.now() - since;
      const longestMs = await pulse.stop();
      const stayed = held.filter(({ isHeld }) => isHeld).length;
      const usedMb = (process.memoryUsage().heapUsed - before) / 2 ** 20;
      const heapMb = (liveBytes() - before) / 2 ** 20;
      process.stdout.write(
        `${count} acquisitions beside ${HELD} locks with a TTL of ${ttlMs.toFixed(0)} ms: ${got.length} got in ${tookMs.toFixed(0)} ms; started in ${startedMs.toFixed(0)} ms, ` +
          `event loop blocked for ${longestMs.toFixed(0)} ms at most, heap +${waitingMb.toFixed(0)} MB while they wait, +${heapMb.toFixed(0)} MB when they are held, with garbage +${usedMb.toFixed(0)} MB, ${JSON.stringify(seen)}\n`,
      );
      expect([...failures]).toEqual([]);
      expect(stayed).toBe(HELD);
      expect(Math.max(waitingMb, heapMb)).toBeLessThan(MAX_MB);
      expect(seen).toMatchObject({ lost: 0, health: ['up'] });
      await Promise.all([...held, ...got].map((lock) => lock.release()));
    },
    2 * WAIT_MS,
  );
});

function all<T>(count: number, start: (i: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => start(i)));
}

/** How long it takes to start an acquisition, on this machine and now. */
async function startMs(locks: LockService): Promise<number> {
  const count = 1_000;
  const since = performance.now();
  const starting = all(count, (i) => locks.acquire(`warm-up-${i}`));
  const tookMs = performance.now() - since;
  await Promise.all((await starting).map((lock) => lock.release()));
  return tookMs / count;
}

/** Measures the longest time for which nothing else got its turn. */
function feelPulse(): { stop(): Promise<number> } {
  const pulse = { longestMs: 0, over: false };
  const beat = async (): Promise<void> => {
    for (let last = performance.now(); !pulse.over;) {
      await nextTurn();
      const now = performance.now();
      pulse.longestMs = Math.max(pulse.longestMs, now - last);
      last = now;
    }
  };
  const beating = beat();
  return {
    stop: async () => {
      pulse.over = true;
      await beating;
      return pulse.longestMs;
    },
  };
}
