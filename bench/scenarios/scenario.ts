import type { Arena } from '../arena.js';
import type { Contestant } from '../contestants/contestant.js';

/** A measured value, by the name of its column in the report; see `report/columns.ts`. */
export type Metric =
  | 'perSecond'
  | 'timesFloor'
  | 'share'
  | 'requestsEach'
  | 'requestsPerSecond'
  | 'meanMs'
  | 'medianMs'
  | 'p99Ms'
  | 'longestMs'
  | 'p99ToMean'
  | 'evenness'
  | 'firstMs'
  | 'allMs'
  | 'usEach'
  | 'usTimesFloor'
  | 'bytesEach'
  | 'cpuPercent'
  | 'bytesHeld'
  | 'bytesWaiting'
  | 'usCore'
  | 'usBackend'
  | 'usPackages'
  | 'usNode'
  | 'usGarbage'
  | 'usBenchmark'
  | 'usServer'
  | 'starved'
  | 'overtaken'
  | 'failures'
  | 'overlaps';

/** Counts of what must not happen. */
export const FAULTS: readonly Metric[] = ['starved', 'failures', 'overlaps'];

export type Figures = Readonly<Partial<Record<Metric, number>>>;

export interface Measurement {
  readonly figures: Figures;
  /** The text of the first failure. */
  readonly failure?: string;
  /** How long callers waited: the 0th to the 100th of 100 parts. */
  readonly waitsMs?: readonly number[];
}

export interface Scenario {
  readonly id: string;
  readonly title: string;
  /** Counts that come out the same every time are taken once. */
  readonly once?: true;
  /** Where it stands on a scaling curve. */
  readonly point?: { readonly curve: string; readonly x: number };
  /** Who can take part. */
  admits(contestant: Contestant, arena: Arena): boolean;
  /** @param floor what it may be compared with; `undefined` for the floor itself */
  measure(arena: Arena, contestant: Contestant, pace: Pace, floor?: Contestant): Promise<Measurement>;
  /** About so many seconds for one contestant, for the progress line. */
  seconds(pace: Pace): number;
}

/** How long to look. */
export interface Pace {
  /** A long race. */
  readonly raceMs: number;
  /** Before races, for the compiler and the connections. */
  readonly warmUpMs: number;
  /** The floor and a contestant race in turns: how many slices each, and how long. */
  readonly slices: number;
  readonly sliceMs: number;
  /** Fresh processes, each for its first second. */
  readonly freshProcesses: number;
  readonly waitingMs: number;
  /** Whether to count requests too, in a run of its own. */
  readonly counts: boolean;
  /** Whether to look where the processor time goes, in a run of its own. */
  readonly profiles: boolean;
  readonly quick: boolean;
}

export const PACES = {
  full: {
    raceMs: 2_000,
    warmUpMs: 300,
    slices: 10,
    sliceMs: 150,
    freshProcesses: 3,
    waitingMs: 5_000,
    counts: true,
    profiles: false,
    quick: false,
  },
  quick: {
    raceMs: 500,
    warmUpMs: 150,
    slices: 4,
    sliceMs: 150,
    freshProcesses: 1,
    waitingMs: 1_000,
    counts: true,
    profiles: false,
    quick: true,
  },
} as const satisfies Record<string, Pace>;
