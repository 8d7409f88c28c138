import type { Arena, WorkerProcess } from '../arena.js';
import type { Contestant } from '../contestants/contestant.js';
import { sum } from '../measures.js';
import type { CodeOwner } from '../processor-profile.js';
import {
  compareWithFloor,
  computeFigures,
  computeServerFigures,
  countServed,
  createTeam,
  type Heat,
  type Pair,
  type RaceRules,
  type ServerPair,
  type ServerSpending,
  runHeat,
  sumFaults,
  type Team,
} from './heat.js';
import { FAULTS, type Figures, type Measurement, type Metric, type Pace, type Scenario } from './scenario.js';

export interface RaceSettings extends RaceRules {
  readonly id: string;
  readonly title: string;
  readonly processes: number;
  /** Kinds of measurements: short slices in turns with the floor for the speed, a long race for the waits. */
  readonly measurements: readonly ('slices' | 'long')[];
  readonly metrics: readonly Metric[];
  readonly point?: Scenario['point'];
  readonly onlyIn?: Scenario['onlyIn'];
  /** Whether a contestant is to take part. @default all */
  readonly canTakePart?: (contestant: Contestant) => boolean;
}

/** Returns a scenario of callers that only acquire and release locks. */
export function raceScenario(settings: RaceSettings): Scenario {
  const { id, title, processes, measurements, metrics, point, onlyIn, canTakePart = () => true } = settings;
  const sliced = measurements.includes('slices');
  return {
    id,
    title,
    ...(point ? { point, isMeasuredOnce: true } : {}),
    ...(onlyIn ? { onlyIn } : {}),
    admits: (contestant) =>
      canTakePart(contestant) &&
      !(contestant.isLocalOnly === true && processes > 1) &&
      !(contestant.isUncontendedOnly === true && settings.keys === 'one'),
    estimateSeconds: ({ raceMs, warmUpMs, slices, sliceMs }) => {
      const slicedMs = sliced ? 2 * (warmUpMs + slices * sliceMs) : 0;
      return 2 + (slicedMs + (measurements.includes('long') ? warmUpMs + raceMs : 0)) / 1_000;
    },
    measure: async (arena, contestant, pace, floor) => {
      const all = await arena.runWithWorkers(contestant, processes, (own) =>
        sliced && floor
          ? arena.runWithWorkers(floor, processes, (base) =>
              measureTeams(
                settings,
                pace,
                { arena, contestant, workers: own },
                { arena, contestant: floor, workers: base },
              ),
            )
          : measureTeams(settings, pace, { arena, contestant, workers: own }),
      );
      const counts = pace.countsRequests && arena.canCountRequests && metrics.includes('requestsEach');
      const requestsEach = counts ? await countRequestsEach(arena, contestant, settings, pace) : NaN;
      const figures = pickMetrics({ ...all.figures, requestsEach }, metrics);
      if (!pace.profilesProcessor) return { ...all, figures };
      return { ...all, figures: { ...figures, ...(await profileRace(arena, contestant, settings, pace)) } };
    },
  };
}

/** Processes of one contestant in an arena. */
interface Entrant {
  readonly arena: Arena;
  readonly contestant: Contestant;
  readonly workers: readonly WorkerProcess[];
}

/**
 * Measures one contestant.
 * @param floor the floor, where the contestant is compared with it
 */
async function measureTeams(settings: RaceSettings, pace: Pace, own: Entrant, floor?: Entrant): Promise<Measurement> {
  const { measurements } = settings;
  const [ownTeam, floorTeam] = [createTeam(own.workers), floor && createTeam(floor.workers)];
  const servers: ServerPair[] = [];
  const runPair = async (ms: number): Promise<Pair> => {
    const base = floor && floorTeam ? await runMeasured(floorTeam, floor, settings, ms) : NO_HEAT;
    const measured = await runMeasured(ownTeam, own, settings, ms);
    servers.push({ floor: base.server, own: measured.server });
    return { floor: base.heat, own: measured.heat };
  };
  const warmUp = await runPair(pace.warmUpMs);
  const pairs: Pair[] = [];
  if (measurements.includes('slices')) while (pairs.length < pace.slices) pairs.push(await runPair(pace.sliceMs));
  const slices = pairs.map((pair) => pair.own);
  const long = measurements.includes('long') ? [await runHeat(ownTeam, settings, pace.raceMs, pace.warmUpMs)] : [];
  const faults = sumFaults([warmUp.own, ...slices, ...long]);
  const { figures, waitsMs } = computeFigures(long.length > 0 ? long : slices, settings);
  const compared = floor ? compareWithFloor(pairs) : {};
  // The first pair was the warm-up.
  const server = computeServerFigures(servers.slice(1));
  return { ...faults, figures: { ...figures, ...compared, ...server, ...faults.figures }, waitsMs };
}

const NO_HEAT = { heat: [], server: { served: NaN, cpuMs: NaN, commandMs: NaN } };

/** Runs one race, and measures the time that the server uses meanwhile. */
async function runMeasured(
  team: Team,
  { arena, contestant }: Entrant,
  rules: RaceRules,
  ms: number,
): Promise<{ readonly heat: Heat; readonly server: ServerSpending }> {
  const before = await arena.readServerClock(contestant);
  const heat = await runHeat(team, rules, ms);
  const after = await arena.readServerClock(contestant);
  const [cpuMs, commandMs] = [after.cpuMs - before.cpuMs, after.commandMs - before.commandMs];
  return { heat, server: { served: countServed(heat), cpuMs, commandMs } };
}

/** Returns the figures of the given metrics and of all faults. */
function pickMetrics(figures: Figures, metrics: readonly Metric[]): Figures {
  return Object.fromEntries([...metrics, ...FAULTS].map((metric) => [metric, figures[metric] ?? NaN]));
}

/** Counts the requests of an acquisition and its release, in a run of its own. */
async function countRequestsEach(
  arena: Arena,
  contestant: Contestant,
  settings: RaceSettings,
  pace: Pace,
): Promise<number> {
  return arena.runWithWorkers(contestant, settings.processes, async (workers) => {
    let served = NaN;
    const requests = await arena.countRequestsDuring(async () => {
      served = countServed(await runHeat(createTeam(workers), settings, pace.raceMs));
    });
    return requests / served;
  });
}

/** Measures the microseconds of an acquisition and its release, by the owner of the code, after V8 has compiled it. */
async function profileRace(arena: Arena, contestant: Contestant, settings: RaceSettings, pace: Pace): Promise<Figures> {
  return arena.runWithWorkers(contestant, settings.processes, async (workers) => {
    await runHeat(createTeam(workers), settings, pace.warmUpMs + pace.raceMs);
    await Promise.all(workers.map((worker) => worker.call('startProfile')));
    const served = countServed(await runHeat(createTeam(workers), settings, pace.raceMs));
    const profiles = await Promise.all(workers.map((worker) => worker.call('stopProfile')));
    const each = (ms: number): number => (ms * 1_000) / served;
    const usSpentIn = (owner: CodeOwner): number => each(sum(profiles.map((profile) => profile?.[owner] ?? NaN)));
    return {
      usCore: usSpentIn('core'),
      usBackend: usSpentIn('backend'),
      usPackages: usSpentIn('packages'),
      usNode: usSpentIn('node'),
      usGarbage: usSpentIn('garbage'),
      usBenchmark: usSpentIn('benchmark'),
    };
  });
}
