import type { Arena } from './arena.js';
import type { Plan } from './arguments.js';
import type { Contestant } from './contestants/contestant.js';
import { median } from './measures.js';
import { competitionOf } from './competitions.js';
import type { Progress } from './progress.js';
import { FAULTS, type Figures, type Measurement, type Metric, type Pace, type Scenario } from './scenarios/scenario.js';

/** The medians over the rounds of one contestant in one scenario. */
export interface Result {
  readonly scenario: string;
  readonly contestant: string;
  readonly figures: Figures;
  readonly rounds: number;
  /** The text of the first failure, or why there are no figures. */
  readonly failure?: string;
  readonly waitsMs?: readonly number[];
}

/** Lets each contestant run each scenario, round for round, beside the floor where it is compared with it. */
export async function championship(arena: Arena, plan: Plan, progress: Progress): Promise<Result[]> {
  const { floor, others } = competitionOf(plan.backend);
  const invited = others.filter(
    ({ name }) => plan.contestants === 'all' || plan.contestants.some((who) => name.includes(who)),
  );
  const heats = plan.scenarios.flatMap((scenario) => {
    const present = [floor, ...invited].filter((contestant) => scenario.admits(contestant, arena));
    const rounds = scenario.once ? 1 : plan.rounds;
    return present.map((contestant) => ({ scenario, contestant, rounds }));
  });
  progress.expect(heats.map(({ scenario, rounds }) => rounds * scenario.seconds(plan.pace)));
  const results: Result[] = [];
  for (const { scenario, contestant, rounds } of heats) {
    progress.begin(`${scenario.id}: ${contestant.name}`);
    const measured: Measurement[] = [];
    for (let round = 0; round < rounds; round += 1)
      measured.push(await measure(arena, scenario, { contestant, floor }, paceOf(round, plan)));
    results.push({ scenario: scenario.id, contestant: contestant.name, rounds, ...summary(measured) });
    progress.end();
  }
  return results;
}

/** Looks that take a run of their own are taken in the first round. */
function paceOf(round: number, { pace }: Plan): Pace {
  return round === 0 ? pace : { ...pace, counts: false, profiles: false };
}

interface Pair {
  readonly contestant: Contestant;
  readonly floor: Contestant;
}

/** A contestant that fails has no figures in this round, and the others go on. */
async function measure(
  arena: Arena,
  scenario: Scenario,
  { contestant, floor }: Pair,
  pace: Pace,
): Promise<Measurement> {
  try {
    return await scenario.measure(arena, contestant, pace, contestant === floor ? undefined : floor);
  } catch (error) {
    return { figures: { failures: 1 }, failure: messageOf(error) };
  }
}

function summary(measured: readonly Measurement[]): Pick<Result, 'figures' | 'failure' | 'waitsMs'> {
  const metrics = new Set(measured.flatMap(({ figures }) => Object.keys(figures) as Metric[]));
  const all = Array.from(metrics, (metric) => [metric, overall(metric, measured)] as const);
  const known = all.filter(([, value]) => !Number.isNaN(value));
  const failure = measured.find((each) => each.failure !== undefined)?.failure;
  const waitsMs = measured.at(-1)?.waitsMs;
  return {
    figures: Object.fromEntries(known),
    ...(failure === undefined ? {} : { failure }),
    ...(waitsMs === undefined ? {} : { waitsMs }),
  };
}

/** Adds up what must not happen; the median counts for the rest. */
const ADDED_UP: readonly Metric[] = [...FAULTS, 'overtaken'];

function overall(metric: Metric, measured: readonly Measurement[]): number {
  const values = measured.map(({ figures }) => figures[metric] ?? NaN).filter((value) => !Number.isNaN(value));
  return ADDED_UP.includes(metric) ? values.reduce((sum, value) => sum + value, 0) : median(values);
}

/** An error of another process may have lost its class on the way. */
function messageOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error);
}
