import { setTimeout as sleep } from 'node:timers/promises';
import type { Arena, WorkerProcess } from '../arena.js';
import type { Figures, Pace, Scenario } from './scenario.js';

const CALLERS = 200;
const SETTLING_MS = 500;

const MEASURING: Omit<Scenario, 'id' | 'title'> = {
  admits: ({ isLocalOnly, isUncontendedOnly, isRaceVariant }) => !isLocalOnly && !isUncontendedOnly && !isRaceVariant,
  estimateSeconds: ({ waitingMs }) => 2 + (SETTLING_MS + waitingMs) / 1_000,
  measure: async (arena, contestant, pace) => {
    const figures = await arena.runWithWorkers(contestant, 2, (workers) => measureRelease(workers, pace));
    if (!arena.canCountRequests || !pace.countsRequests) return { figures };
    const requests = await arena.runWithWorkers(contestant, 2, (workers) =>
      countRequestsOfWaiters(arena, workers, pace),
    );
    return { figures: { ...figures, requestsPerSecond: requests / (pace.waitingMs / 1_000) } };
  },
};

/** Scenarios of waiting callers: their requests during the wait, and the time until they acquire the released key. */
export const WAITING: Scenario = {
  id: 'S5',
  title: `${CALLERS} callers of one process wait for a key that another process has`,
  ...MEASURING,
};

export const WAITING_FOR_PERMITS: Scenario = {
  id: 'P5',
  title: `${CALLERS} callers of one process wait for one of 10 permits, which another process has`,
  onlyIn: 'redis-permits',
  ...MEASURING,
};

async function measureRelease(workers: readonly WorkerProcess[], { waitingMs }: Pace): Promise<Figures> {
  const { holder, waiting } = await startWaiting(workers);
  await sleep(SETTLING_MS + waitingMs);
  const at = await holder.call('releaseAll');
  const entered = await waiting;
  return {
    firstMs: Math.min(...entered) - at,
    allMs: entered.length === CALLERS ? Math.max(...entered) - at : NaN,
    failures: CALLERS - entered.length,
  };
}

async function countRequestsOfWaiters(
  arena: Arena,
  workers: readonly WorkerProcess[],
  { waitingMs }: Pace,
): Promise<number> {
  await startWaiting(workers);
  await sleep(SETTLING_MS);
  return arena.countRequestsDuring(() => sleep(waitingMs));
}

interface WaitingCallers {
  readonly holder: WorkerProcess;
  readonly waiting: Promise<Float64Array>;
}

async function startWaiting([holder, waiter]: readonly WorkerProcess[]): Promise<WaitingCallers> {
  if (!holder || !waiter) throw new Error('this takes two processes');
  const key = await holder.call('holdWhole');
  const waiting = waiter.call('acquireTogether', { key, callers: CALLERS });
  // The call rejects when the process is killed during the wait.
  waiting.catch(() => undefined);
  return { holder, waiting };
}
