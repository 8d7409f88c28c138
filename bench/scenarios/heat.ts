import { randomUUID } from 'node:crypto';
import type { WorkerProcess } from '../arena.js';
import type { Contest, Race } from '../contend.js';
import { concatenated, mean, median, overlaps, percentiles, sum } from '../measures.js';
import { now } from '../monotonic-clock.js';
import type { Figures, Measurement } from './scenario.js';

/** The processes of one contestant, and the key that they race for, or how their keys begin. */
export interface Team {
  readonly workers: readonly WorkerProcess[];
  readonly name: string;
}

/** One race, as each process of a team saw it. */
export type Heat = readonly Contest[];

/** A heat of the floor, and one of a contestant right after it. */
export interface Pair {
  readonly floor: Heat;
  readonly own: Heat;
}

export type Rules = Pick<Race, 'keys' | 'callers' | 'rhythm' | 'insideMs'>;

/** Time for the call to arrive in all processes, which begin together. */
const LEAD_MS = 5;

export function team(workers: readonly WorkerProcess[]): Team {
  // Nobody who was killed earlier can still have it.
  return { workers, name: `race-${randomUUID()}` };
}

/** Resolves when everybody is out. */
export function heat(
  { workers, name }: Team,
  { keys, callers, rhythm, insideMs }: Rules,
  lengthMs: number,
  /** Before what counts. */
  warmUpMs = 0,
): Promise<Heat> {
  const startAt = now() + LEAD_MS;
  const countsFrom = startAt + warmUpMs;
  const race: Race = { name, keys, callers, rhythm, insideMs, startAt, countsFrom, until: countsFrom + lengthMs };
  return Promise.all(workers.map((worker) => worker.call('contend', race)));
}

export const servedIn = (ran: Heat): number => sum(ran.map(({ served }) => served));

const perSecond = (ran: Heat): number => sum(ran.map((each) => each.acquisitions / (each.lastedMs / 1_000)));

const usEach = (ran: Heat): number => (sum(ran.map(({ cpuMs }) => cpuMs)) * 1_000) / servedIn(ran);

const bytesEach = (ran: Heat): number => sum(ran.map(({ bytes }) => bytes)) / servedIn(ran);

/** Compares neighbours only: the machine is not the same from minute to minute. */
export function timesFloor(pairs: readonly Pair[]): Figures {
  return {
    timesFloor: median(pairs.map(({ own, floor }) => perSecond(own) / perSecond(floor))),
    usTimesFloor: median(pairs.map(({ own, floor }) => usEach(own) / usEach(floor))),
  };
}

const PERCENTS = Array.from({ length: 101 }, (_, percent) => percent);

/** Medians over several heats of one team, and the waits of all. */
export function figuresOf(
  heats: readonly Heat[],
  { insideMs }: Rules,
): Measurement & { readonly waitsMs: readonly number[] } {
  const waits = concatenated(heats.flat().map((contest) => contest.waitsMs));
  const waitsMs = percentiles(waits, PERCENTS);
  const rate = median(heats.map(perSecond));
  const byProcess = heats[0]?.map((_, place) => sum(heats.map((ran) => ran[place]?.acquisitions ?? NaN))) ?? [];
  const [meanMs, p99Ms = NaN] = [mean(waits), waitsMs[99]];
  return {
    figures: {
      perSecond: rate,
      share: (rate * insideMs) / 1_000,
      usEach: median(heats.map(usEach)),
      bytesEach: median(heats.map(bytesEach)),
      meanMs,
      medianMs: waitsMs[50] ?? NaN,
      p99Ms,
      p99ToMean: p99Ms / meanMs,
      longestMs: waitsMs[100] ?? NaN,
      evenness: Math.min(...byProcess) / Math.max(...byProcess),
    },
    waitsMs,
  };
}

/** Added up over all heats of one team, the warm-up too. */
export function faultsOf(heats: readonly Heat[]): Pick<Measurement, 'figures' | 'failure'> {
  const contests = heats.flat();
  const failure = contests.map((contest) => contest.failure).find((text) => text !== undefined);
  return {
    figures: {
      starved: sum(contests.map(({ starved }) => starved)),
      overtaken: sum(contests.map(({ overtaken }) => overtaken)),
      failures: sum(contests.map(({ failures }) => failures)),
      overlaps: overlaps(contests.map(({ visits }) => visits)),
    },
    ...(failure === undefined ? {} : { failure }),
  };
}
