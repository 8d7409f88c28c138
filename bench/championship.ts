import type { Arena } from './arena.js';
import type { Plan } from './arguments.js';
import type { Contestant } from './contestants/contestant.js';
import { median } from './measures.js';
import { competitionOf } from './competitions.js';
import type { Progress } from './progress.js';
import {
  FAULTS,
  SHARES_COMPETITIONS,
  type Figures,
  type Measurement,
  type Metric,
  type Pace,
  type Scenario,
} from './scenarios/scenario.js';

/** Result of one contestant in one scenario: medians over its rounds. */
export interface Result {
  readonly scenario: string;
  readonly contestant: string;
  readonly figures: Figures;
  readonly rounds: number;
  /** Message of the first failure, or the reason why there are no figures. */
  readonly failure?: string;
  readonly waitsMs?: readonly number[];
}

/** Measures each contestant in each scenario, round after round. */
export async function runChampionship(arena: Arena, plan: Plan, progress: Progress): Promise<Result[]> {
  const { floor, others } = competitionOf(plan.backend);
  const chosen = others.filter(
    ({ name }) => plan.contestants === 'all' || plan.contestants.some((who) => name.includes(who)),
  );
  const scenarios = plan.scenarios.filter(
    ({ onlyIn }) => onlyIn === SHARES_COMPETITIONS.find((name) => name === plan.backend),
  );
  const entries = scenarios.flatMap((scenario) => {
    const participants = [floor, ...chosen].filter((contestant) => scenario.admits(contestant, arena));
    const rounds = scenario.isMeasuredOnce ? 1 : plan.rounds;
    return participants.map((contestant) => ({ scenario, contestant, rounds }));
  });
  progress.setEstimates(entries.map(({ scenario, rounds }) => rounds * scenario.estimateSeconds(plan.pace)));
  const results: Result[] = [];
  for (const { scenario, contestant, rounds } of entries) {
    progress.beginStep(`${scenario.id}: ${contestant.name}`);
    const measurements: Measurement[] = [];
    for (let round = 0; round < rounds; round += 1)
      measurements.push(await measure(arena, scenario, { contestant, floor }, paceOfRound(round, plan)));
    results.push({ scenario: scenario.id, contestant: contestant.name, rounds, ...summarise(measurements) });
    progress.endStep();
  }
  return results;
}

/**
 * Returns the pace of a round. Only the first round counts requests and profiles, since both need a run of their own.
 */
function paceOfRound(round: number, { pace }: Plan): Pace {
  return round === 0 ? pace : { ...pace, countsRequests: false, profilesProcessor: false };
}

interface Entrants {
  readonly contestant: Contestant;
  readonly floor: Contestant;
}

/** Measures one round. A contestant that fails gets no figures for it, and the championship goes on. */
async function measure(
  arena: Arena,
  scenario: Scenario,
  { contestant, floor }: Entrants,
  pace: Pace,
): Promise<Measurement> {
  try {
    return await scenario.measure(arena, contestant, pace, contestant === floor ? undefined : floor);
  } catch (error) {
    return { figures: { failures: 1 }, failure: messageOf(error) };
  }
}

function summarise(measurements: readonly Measurement[]): Pick<Result, 'figures' | 'failure' | 'waitsMs'> {
  const metrics = new Set(measurements.flatMap(({ figures }) => Object.keys(figures) as Metric[]));
  const all = Array.from(metrics, (metric) => [metric, combineRounds(metric, measurements)] as const);
  const known = all.filter(([, value]) => !Number.isNaN(value));
  const failure = measurements.find((each) => each.failure !== undefined)?.failure;
  const waitsMs = measurements.at(-1)?.waitsMs;
  return {
    figures: Object.fromEntries(known),
    ...(failure === undefined ? {} : { failure }),
    ...(waitsMs === undefined ? {} : { waitsMs }),
  };
}

/** Metrics that are added up over the rounds; all others are medians. */
const ADDED_METRICS: readonly Metric[] = [...FAULTS, 'overtaken'];

function combineRounds(metric: Metric, measurements: readonly Measurement[]): number {
  const values = measurements.map(({ figures }) => figures[metric] ?? NaN).filter((value) => !Number.isNaN(value));
  return ADDED_METRICS.includes(metric) ? values.reduce((sum, value) => sum + value, 0) : median(values);
}

/** Returns the message of an error, also of one from another process, which has lost its class. */
function messageOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error);
}
