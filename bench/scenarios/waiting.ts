import { setTimeout as sleep } from 'node:timers/promises';
import type { Arena, WorkerProcess } from '../arena.js';
import type { Figures, Pace, Scenario } from './scenario.js';

const CALLERS = 200;
const SETTLING_MS = 500;

/** The cost of waiters while nothing happens, and how soon they are in once the key is free. */
export const WAITING: Scenario = {
  id: 'S5',
  title: `${CALLERS} callers of one process wait for a key that another process has`,
  admits: ({ oneProcess, alone, racesOnly }) => !oneProcess && !alone && !racesOnly,
  seconds: ({ waitingMs }) => 2 + (SETTLING_MS + waitingMs) / 1_000,
  measure: async (arena, contestant, pace) => {
    const figures = await arena.within(contestant, 2, (workers) => released(workers, pace));
    if (!arena.counts || !pace.counts) return { figures };
    const requests = await arena.within(contestant, 2, (workers) => counted(arena, workers, pace));
    return { figures: { ...figures, requestsPerSecond: requests / (pace.waitingMs / 1_000) } };
  },
};

async function released(workers: readonly WorkerProcess[], { waitingMs }: Pace): Promise<Figures> {
  const { holder, waiting } = await begin(workers);
  await sleep(SETTLING_MS + waitingMs);
  const at = await holder.call('letGo');
  const entered = await waiting;
  return {
    firstMs: Math.min(...entered) - at,
    allMs: entered.length === CALLERS ? Math.max(...entered) - at : NaN,
    failures: CALLERS - entered.length,
  };
}

async function counted(arena: Arena, workers: readonly WorkerProcess[], { waitingMs }: Pace): Promise<number> {
  await begin(workers);
  await sleep(SETTLING_MS);
  return arena.requestsDuring(() => sleep(waitingMs));
}

interface Begun {
  readonly holder: WorkerProcess;
  readonly waiting: Promise<Float64Array>;
}

async function begin([holder, waiter]: readonly WorkerProcess[]): Promise<Begun> {
  if (!holder || !waiter) throw new Error('this takes two processes');
  const key = await holder.call('hold', 1);
  const waiting = waiter.call('waitTogether', { key, callers: CALLERS });
  // A process that is killed while it waits tells nobody.
  waiting.catch(() => undefined);
  return { holder, waiting };
}
