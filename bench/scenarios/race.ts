import type { Arena, WorkerProcess } from '../arena.js';
import type { Contestant } from '../contestants/contestant.js';
import { sum } from '../measures.js';
import type { Part } from '../processor-profile.js';
import { faultsOf, figuresOf, heat, type Pair, type Rules, servedIn, team, timesFloor } from './heat.js';
import { FAULTS, type Figures, type Measurement, type Metric, type Pace, type Scenario } from './scenario.js';

export interface RaceSettings extends Rules {
  readonly id: string;
  readonly title: string;
  readonly processes: number;
  /** Slices in turns with the floor tell the speed; only a long race shows long waits. */
  readonly looks: readonly ('slices' | 'long')[];
  readonly metrics: readonly Metric[];
  readonly point?: Scenario['point'];
  /** Who takes part, of those who can. @default all */
  readonly only?: (contestant: Contestant) => boolean;
}

/** Callers who take locks and give them back, and do nothing else. */
export function race(settings: RaceSettings): Scenario {
  const { id, title, processes, looks, metrics, point, only = () => true } = settings;
  const sliced = looks.includes('slices');
  return {
    id,
    title,
    ...(point ? { point, once: true } : {}),
    admits: (contestant) =>
      only(contestant) &&
      !(contestant.oneProcess === true && processes > 1) &&
      !(contestant.alone === true && settings.keys === 'one'),
    seconds: ({ raceMs, slices, sliceMs }) =>
      2 + ((sliced ? 2 * slices * sliceMs : 0) + (looks.includes('long') ? raceMs : 0)) / 1_000,
    measure: async (arena, contestant, pace, floor) => {
      const all = await arena.within(contestant, processes, (own) =>
        sliced && floor
          ? arena.within(floor, processes, (base) => look(settings, pace, own, base))
          : look(settings, pace, own),
      );
      const counts = pace.counts && arena.counts && metrics.includes('requestsEach');
      const requestsEach = counts ? await countRequests(arena, contestant, settings, pace) : NaN;
      const figures = chosen({ ...all.figures, requestsEach }, metrics);
      if (!pace.profiles) return { ...all, figures };
      return { ...all, figures: { ...figures, ...(await profiled(arena, contestant, settings, pace)) } };
    },
  };
}

type Workers = readonly WorkerProcess[];

/** @param base the floor's processes, where there is something to compare */
async function look(settings: RaceSettings, pace: Pace, own: Workers, base?: Workers): Promise<Measurement> {
  const { looks } = settings;
  const [ours, floors] = [team(own), base && team(base)];
  const turn = async (ms: number): Promise<Pair> => {
    const floor = floors ? await heat(floors, settings, ms) : [];
    return { own: await heat(ours, settings, ms), floor };
  };
  const warmUp = await turn(pace.warmUpMs);
  const pairs: Pair[] = [];
  if (looks.includes('slices')) while (pairs.length < pace.slices) pairs.push(await turn(pace.sliceMs));
  const slices = pairs.map((pair) => pair.own);
  const long = looks.includes('long') ? [await heat(ours, settings, pace.raceMs, pace.warmUpMs)] : [];
  const faults = faultsOf([warmUp.own, ...slices, ...long]);
  const { figures, waitsMs } = figuresOf(long.length > 0 ? long : slices, settings);
  const compared = base ? timesFloor(pairs) : {};
  return { ...faults, figures: { ...figures, ...compared, ...faults.figures }, waitsMs };
}

/** Failures are shown for every contestant in every scenario. */
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
    let served = NaN;
    const requests = await arena.requestsDuring(async () => {
      served = servedIn(await heat(team(workers), settings, pace.raceMs));
    });
    return requests / served;
  });
}

/** Microseconds of processor time for an acquisition and its release, by whose code they are spent in, once it is compiled. */
async function profiled(arena: Arena, contestant: Contestant, settings: RaceSettings, pace: Pace): Promise<Figures> {
  return arena.within(contestant, settings.processes, async (workers) => {
    await heat(team(workers), settings, pace.warmUpMs + pace.raceMs);
    const serverBefore = await arena.serverMs();
    await Promise.all(workers.map((worker) => worker.call('startProfile')));
    const served = servedIn(await heat(team(workers), settings, pace.raceMs));
    const profiles = await Promise.all(workers.map((worker) => worker.call('stopProfile')));
    const serverMs = (await arena.serverMs()) - serverBefore;
    const each = (ms: number): number => (ms * 1_000) / served;
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
