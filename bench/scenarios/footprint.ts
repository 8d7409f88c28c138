import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkerProcess } from '../arena.js';
import type { Scenario } from './scenario.js';

const TTL_MS = 30_000;
const WAITERS = 10_000;

/** Returns the scenario of idle locks: heap of each lock, and processor time of all. */
export function holdFootprintScenario(count: number, only: Scenario['admits']): Scenario {
  return {
    id: `held-${count}`,
    title: `${count} locks held for a while, with a TTL of 30 s`,
    isMeasuredOnce: true,
    point: { curve: 'locks held', x: count },
    admits: only,
    estimateSeconds: ({ quick }) => 5 + count / 5_000 + (quick ? 10 : TTL_MS / 1_000),
    measure: (arena, contestant, { quick }) =>
      arena.runWithWorkers(
        contestant,
        1,
        async ([worker]) => {
          if (!worker) throw new Error('this takes a process');
          const before = await worker.call('measureLiveBytes');
          await worker.call('hold', count);
          const bytesHeld = ((await worker.call('measureLiveBytes')) - before) / count;
          return { figures: { bytesHeld, cpuPercent: await measureCpuPercent(worker, quick ? 10_000 : TTL_MS) } };
        },
        { ttlMs: TTL_MS },
      ),
  };
}

/** Returns the scenario of waiting callers: heap of each, and processor time of all. */
export function waitFootprintScenario(only: Scenario['admits']): Scenario {
  return {
    id: 'waiting-10000',
    title: `${WAITERS} callers of one process wait for a key that another process has`,
    isMeasuredOnce: true,
    admits: only,
    estimateSeconds: () => 15,
    measure: (arena, contestant) =>
      arena.runWithWorkers(contestant, 2, async ([holder, waiter]) => {
        if (!holder || !waiter) throw new Error('this takes two processes');
        const key = await holder.call('hold', 1);
        const before = await waiter.call('measureLiveBytes');
        waiter.call('acquireTogether', { key, callers: WAITERS }).catch(() => undefined);
        await sleep(1_000);
        const bytesWaiting = ((await waiter.call('measureLiveBytes')) - before) / WAITERS;
        return { figures: { bytesWaiting, cpuPercent: await measureCpuPercent(waiter, 5_000) } };
      }),
  };
}

async function measureCpuPercent(worker: WorkerProcess, ms: number): Promise<number> {
  const before = await worker.call('measureCpuMs');
  await sleep(ms);
  return (((await worker.call('measureCpuMs')) - before) / ms) * 100;
}
