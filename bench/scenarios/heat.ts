import { randomUUID } from 'node:crypto';
import type { ServerClock, WorkerProcess } from '../arena.js';
import type { Contest, Race } from '../contend.js';
import { concatenate, countOverlaps, mean, median, percentiles, sum } from '../measures.js';
import { now } from '../monotonic-clock.js';
import type { Figures, Measurement } from './scenario.js';

/** Processes of one contestant, and the key of their races, or the beginning of their keys. */
export interface Team {
  readonly workers: readonly WorkerProcess[];
  readonly name: string;
}

/** Records of one race, one of each process. */
export type Heat = readonly Contest[];

/** Heat of the floor, and the heat of a contestant right after it. */
export interface Pair {
  readonly floor: Heat;
  readonly own: Heat;
}

/** Time that the server used during one heat. */
export interface ServerSpending extends ServerClock {
  readonly served: number;
}

/** Time that the server used during the two heats of a pair. */
export interface ServerPair {
  readonly floor: ServerSpending;
  readonly own: ServerSpending;
}

export type RaceRules = Pick<Race, 'keys' | 'callers' | 'rhythm' | 'holdMs' | 'writers'>;

/** Milliseconds for the call to reach all processes before they begin together. */
const LEAD_MS = 5;

export function createTeam(workers: readonly WorkerProcess[]): Team {
  // The key is a new one: an earlier process that was killed may still hold others.
  return { workers, name: `race-${randomUUID()}` };
}

/** Runs one race. Resolves when all callers have released the lock. */
export function runHeat(
  { workers, name }: Team,
  { keys, callers, rhythm, holdMs, writers = 0 }: RaceRules,
  lengthMs: number,
  warmUpMs = 0,
): Promise<Heat> {
  const startAt = now() + LEAD_MS;
  const countsFrom = startAt + warmUpMs;
  const race: Race = {
    name,
    keys,
    callers,
    rhythm,
    holdMs,
    writers,
    startAt,
    countsFrom,
    until: countsFrom + lengthMs,
  };
  return Promise.all(workers.map((worker) => worker.call('contend', race)));
}

export const countServed = (heat: Heat): number => sum(heat.map(({ served }) => served));

const perSecond = (heat: Heat): number => sum(heat.map((each) => each.acquisitions / (each.lastedMs / 1_000)));

const usEach = (heat: Heat): number => (sum(heat.map(({ cpuMs }) => cpuMs)) * 1_000) / countServed(heat);

const usServer = ({ cpuMs, served }: ServerSpending): number => (cpuMs * 1_000) / served;

const usInCommands = ({ commandMs, served }: ServerSpending): number => (commandMs * 1_000) / served;

const bytesEach = (heat: Heat): number => sum(heat.map(({ bytes }) => bytes)) / countServed(heat);

/**
 * Returns the median ratios of pairs. The two heats of a pair ran close together, since the speed of a machine varies.
 */
export function compareWithFloor(pairs: readonly Pair[]): Figures {
  return {
    timesFloor: median(pairs.map(({ own, floor }) => perSecond(own) / perSecond(floor))),
    usTimesFloor: median(pairs.map(({ own, floor }) => usEach(own) / usEach(floor))),
  };
}

/** Returns the time that the server used for an acquisition and its release, and the median ratios to the floor. */
export function computeServerFigures(pairs: readonly ServerPair[]): Figures {
  return {
    usServer: median(pairs.map(({ own }) => usServer(own))),
    serverTimesFloor: median(pairs.map(({ own, floor }) => usServer(own) / usServer(floor))),
    usInCommands: median(pairs.map(({ own }) => usInCommands(own))),
    commandsTimesFloor: median(pairs.map(({ own, floor }) => usInCommands(own) / usInCommands(floor))),
  };
}

const PERCENTS = Array.from({ length: 101 }, (_, percent) => percent);

/** Returns the medians over several heats of one team, and the percentiles of all waits. */
export function computeFigures(
  heats: readonly Heat[],
  { holdMs }: RaceRules,
): Measurement & { readonly waitsMs: readonly number[] } {
  const waits = concatenate(heats.flat().map((contest) => contest.waitsMs));
  const waitsMs = percentiles(waits, PERCENTS);
  const rate = median(heats.map(perSecond));
  const byProcess = heats[0]?.map((_, place) => sum(heats.map((heat) => heat[place]?.acquisitions ?? NaN))) ?? [];
  const [meanMs, p99Ms = NaN] = [mean(waits), waitsMs[99]];
  return {
    figures: {
      perSecond: rate,
      share: (rate * holdMs) / 1_000,
      usEach: median(heats.map(usEach)),
      bytesEach: median(heats.map(bytesEach)),
      meanMs,
      medianMs: waitsMs[50] ?? NaN,
      p99Ms,
      p99ToMean: p99Ms / meanMs,
      longestMs: waitsMs[100] ?? NaN,
      longestWriterMs: Math.max(...heats.flat().map((contest) => contest.longestWriterMs)),
      evenness: Math.min(...byProcess) / Math.max(...byProcess),
    },
    waitsMs,
  };
}

/** Adds up the faults of all heats of one team. */
export function sumFaults(heats: readonly Heat[]): Pick<Measurement, 'figures' | 'failure'> {
  const contests = heats.flat();
  const failure = contests.map((contest) => contest.failure).find((text) => text !== undefined);
  return {
    figures: {
      starved: sum(contests.map(({ starved }) => starved)),
      overtaken: sum(contests.map(({ overtaken }) => overtaken)),
      failures: sum(contests.map(({ failures }) => failures)),
      overlaps: countOverlaps(contests.map(({ visits }) => visits)),
    },
    ...(failure === undefined ? {} : { failure }),
  };
}
