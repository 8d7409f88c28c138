import { randomUUID } from 'node:crypto';
import type { Arena, WorkerProcess } from '../arena.js';
import type { Contest, Race } from '../contend.js';
import type { Contestant } from '../contestants/contestant.js';
import { concatenated, mean, overlaps, percentiles, sum } from '../measures.js';
import { now } from '../monotonic-clock.js';
import type { Part } from '../processor-profile.js';
import { FAULTS, type Figures, type Measurement, type Metric, type Pace, type Scenario } from './scenario.js';

export interface RaceSettings extends Pick<Race, 'keys' | 'callers' | 'rhythm' | 'insideMs'> {
  readonly id: string;
  readonly title: string;
  readonly processes: number;
  readonly metrics: readonly Metric[];
  readonly point?: Scenario['point'];
  /** Who takes part, of those who can. @default all */
  readonly only?: (contestant: Contestant) => boolean;
}

/** Callers who take locks and give them back, and do nothing else. */
export function race(settings: RaceSettings): Scenario {
  const { id, title, processes, metrics, point, only = () => true } = settings;
  return {
    id,
    title,
    ...(point ? { point, againstFloor: false, once: true } : { againstFloor: true }),
    admits: (contestant) =>
      only(contestant) &&
      !(contestant.oneProcess === true && processes > 1) &&
      !(contestant.alone === true && settings.keys === 'one'),
    seconds: ({ raceMs, warmUpMs }) => 1 + (raceMs + warmUpMs) / 1_000,
    measure: async (arena, contestant, pace) => {
      const contests = await arena.within(contestant, processes, (workers) => run(workers, settings, pace));
      const all = summary(contests, settings, pace);
      const counts = pace.counts && arena.counts && metrics.includes('requestsEach');
      const requestsEach = counts ? await countRequests(arena, contestant, settings, pace) : NaN;
      const figures = chosen({ ...all.figures, requestsEach }, metrics);
      if (!pace.profiles) return { ...all, figures };
      return { ...all, figures: { ...figures, ...(await profiled(arena, contestant, settings, pace)) } };
    },
  };
}

async function run(
  workers: readonly WorkerProcess[],
  { keys, callers, rhythm, insideMs }: RaceSettings,
  { raceMs, warmUpMs }: Pace,
): Promise<Contest[]> {
  const from = now() + warmUpMs;
  // Nobody who was killed earlier can still have it.
  const name = `race-${randomUUID()}`;
  const terms: Race = { name, keys, callers, rhythm, insideMs, from, until: from + raceMs };
  return Promise.all(workers.map((worker) => worker.call('contend', terms)));
}

const PERCENTS = Array.from({ length: 101 }, (_, percent) => percent);

function summary(contests: readonly Contest[], { insideMs }: RaceSettings, { raceMs }: Pace): Measurement {
  const acquisitions = contests.map((contest) => contest.acquisitions);
  const waits = concatenated(contests.map((contest) => contest.waitsMs));
  const waitsMs = percentiles(waits, PERCENTS);
  const failure = contests.map((contest) => contest.failure).find((text) => text !== undefined);
  const perSecond = sum(acquisitions) / (raceMs / 1_000);
  const [meanMs, p99Ms = NaN] = [mean(waits), waitsMs[99]];
  return {
    figures: {
      perSecond,
      share: (perSecond * insideMs) / 1_000,
      meanMs,
      medianMs: waitsMs[50] ?? NaN,
      p99Ms,
      p99ToMean: p99Ms / meanMs,
      longestMs: waitsMs[100] ?? NaN,
      evenness: Math.min(...acquisitions) / Math.max(...acquisitions),
      starved: sum(contests.map(({ starved }) => starved)),
      overtaken: sum(contests.map(({ overtaken }) => overtaken)),
      failures: sum(contests.map(({ failures }) => failures)),
      overlaps: overlaps(contests.map(({ visits }) => visits)),
    },
    ...(failure === undefined ? {} : { failure }),
    waitsMs,
  };
}

/** What goes wrong is shown of everybody everywhere. */
function chosen(figures: Figures, metrics: readonly Metric[]): Figures {
  return Object.fromEntries([...metrics, ...FAULTS].map((metric) => [metric, figures[metric] ?? NaN]));
}

/** In a run of its own, all of which counts, until the last one is out. */
async function countRequests(
  arena: Arena,
  contestant: Contestant,
  settings: RaceSettings,
  pace: Pace,
): Promise<number> {
  return arena.within(contestant, settings.processes, async (workers) => {
    let contests: readonly Contest[] = [];
    const requests = await arena.requestsDuring(async () => {
      contests = await run(workers, settings, { ...pace, warmUpMs: 0 });
    });
    return requests / sum(contests.map(({ served }) => served));
  });
}

/** Microseconds of processor time for an acquisition and its release, by whose code they are spent in, once it is compiled. */
async function profiled(arena: Arena, contestant: Contestant, settings: RaceSettings, pace: Pace): Promise<Figures> {
  return arena.within(contestant, settings.processes, async (workers) => {
    await run(workers, settings, pace);
    const serverBefore = await arena.serverMs();
    await Promise.all(workers.map((worker) => worker.call('startProfile')));
    const contests = await run(workers, settings, { ...pace, warmUpMs: 0 });
    const profiles = await Promise.all(workers.map((worker) => worker.call('stopProfile')));
    const serverMs = (await arena.serverMs()) - serverBefore;
    const each = (ms: number): number => (ms * 1_000) / sum(contests.map(({ served }) => served));
    const spentIn = (part: Part): number => each(sum(profiles.map((profile) => profile?.[part] ?? NaN)));
    return {
      usCore: spentIn('core'),
      usBackend: spentIn('backend'),
      usPackages: spentIn('packages'),
      usNode: spentIn('node'),
      usGarbage: spentIn('garbage'),
      usBenchmark: spentIn('benchmark'),
      usServer: each(serverMs),
    };
  });
}
