import { setTimeout as sleep } from 'node:timers/promises';
import type { Contestant } from '../contestants/contestant.js';
import type { Pace, Scenario } from './scenario.js';

/** Returns the scenario of many held locks: the requests that renew them. */
export function heldLocksScenario(ttlMs: number): Scenario {
  const count = 1_000;
  const watchMs = ({ quick }: Pace): number => (quick ? Math.min(ttlMs, 6_000) : Math.max(ttlMs, 12_000));
  return {
    id: `S6-${ttlMs / 1_000}s`,
    title: `${count} locks held, with a TTL of ${ttlMs / 1_000} s`,
    isMeasuredOnce: true,
    admits: (contestant: Contestant, arena) =>
      contestant.renewsLease && !contestant.isRaceVariant && arena.canCountRequests,
    estimateSeconds: (pace) => 3 + watchMs(pace) / 1_000,
    measure: (arena, contestant, pace) =>
      arena.runWithWorkers(
        contestant,
        1,
        async ([worker]) => {
          if (!worker) throw new Error('this takes a process');
          await worker.call('hold', count);
          const requests = await arena.countRequestsDuring(() => sleep(watchMs(pace)));
          return { figures: { requestsPerSecond: requests / (watchMs(pace) / 1_000) } };
        },
        { ttlMs },
      ),
  };
}
