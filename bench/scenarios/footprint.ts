import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkerProcess } from '../arena.js';
import type { Scenario } from './scenario.js';

const TTL_MS = 30_000;
const WAITERS = 10_000;

/** The cost of locks that a process only holds: heap for each, and processor time for all. */
export function footprint(count: number, only: Scenario['admits']): Scenario {
  return {
    id: `held-${count}`,
    title: `${count} locks held for a while, with a TTL of 30 s`,
    once: true,
    point: { curve: 'locks held', x: count },
    admits: only,
    seconds: ({ quick }) => 5 + count / 5_000 + (quick ? 10 : TTL_MS / 1_000),
    measure: (arena, contestant, { quick }) =>
      arena.within(
        contestant,
        1,
        async ([worker]) => {
          if (!worker) throw new Error('this takes a process');
          const before = await worker.call('liveBytes');
          await worker.call('hold', count);
          const bytesHeld = ((await worker.call('liveBytes')) - before) / count;
          return { figures: { bytesHeld, cpuPercent: await cpuPercent(worker, quick ? 10_000 : TTL_MS) } };
        },
        { ttlMs: TTL_MS },
      ),
  };
}

/** The cost of a caller who waits. */
export function waitingFootprint(only: Scenario['admits']): Scenario {
  return {
    id: 'waiting-10000',
    title: `${WAITERS} callers of one process wait for a key that another process has`,
    once: true,
    admits: only,
    seconds: () => 15,
    measure: (arena, contestant) =>
      arena.within(contestant, 2, async ([holder, waiter]) => {
        if (!holder || !waiter) throw new Error('this takes two processes');
        const key = await holder.call('hold', 1);
        const before = await waiter.call('liveBytes');
        waiter.call('waitTogether', { key, callers: WAITERS }).catch(() => undefined);
        await sleep(1_000);
        const bytesWaiting = ((await waiter.call('liveBytes')) - before) / WAITERS;
        return { figures: { bytesWaiting, cpuPercent: await cpuPercent(waiter, 5_000) } };
      }),
  };
}

async function cpuPercent(worker: WorkerProcess, ms: number): Promise<number> {
  const before = await worker.call('cpuMs');
  await sleep(ms);
  return (((await worker.call('cpuMs')) - before) / ms) * 100;
}
