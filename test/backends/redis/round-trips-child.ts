import { LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { serve } from '../../support/serve.js';

let locks: LockService | undefined;

const api = {
  connect: async (url: string) => {
    locks = new LockService(redis({ url }));
    await (await locks.acquire('warm-up')).release();
  },
  /** Runs callers at once, each of them several times; resolves to how often somebody was not alone. */
  crowd: async ({ callers, rounds }: { callers: number; rounds: number }) => {
    let inside = 0;
    let overlaps = 0;
    const caller = async (): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) {
        await locks?.withLock(
          'hot',
          async () => {
            inside += 1;
            if (inside > 1) overlaps += 1;
            await new Promise(setImmediate);
            inside -= 1;
          },
          { waitMs: 60_000 },
        );
      }
    };
    await Promise.all(Array.from({ length: callers }, caller));
    return overlaps;
  },
  close: () => locks?.close(),
};

export type RoundTripsApi = typeof api;

serve(api);
