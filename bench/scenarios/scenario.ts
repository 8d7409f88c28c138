import type { Arena } from '../arena.js';
import type { Contestant } from '../contestants/contestant.js';

/** Name of a measured value. `report/columns.ts` has its heading in the report. */
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
  | 'longestWriterMs'
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
  | 'serverTimesFloor'
  | 'usInCommands'
  | 'commandsTimesFloor'
  | 'starved'
  | 'overtaken'
  | 'failures'
  | 'overlaps';

/** Competitions of locks that several callers hold at once. */
export const SHARES_COMPETITIONS = ['redis-readers', 'redis-permits'] as const;
export type SharesCompetition = (typeof SHARES_COMPETITIONS)[number];

/** Metrics that are 0 unless something went wrong. */
export const FAULTS: readonly Metric[] = ['starved', 'failures', 'overlaps'];

export type Figures = Readonly<Partial<Record<Metric, number>>>;

export interface Measurement {
  readonly figures: Figures;
  /** Message of the first failure. */
  readonly failure?: string;
  /** Percentiles of the waits, from the 0th to the 100th. */
  readonly waitsMs?: readonly number[];
}

export interface Scenario {
  readonly id: string;
  readonly title: string;
  /** Competition that alone has this scenario, and has only such scenarios. @default all other competitions */
  readonly onlyIn?: SharesCompetition;
  /** Whether one round is enough, because each would have the same figures. */
  readonly isMeasuredOnce?: true;
  /** Place on a scaling curve. */
  readonly point?: { readonly curve: string; readonly x: number };
  /** Returns whether a contestant can take part. */
  admits(contestant: Contestant, arena: Arena): boolean;
  /**
   * Measures one contestant.
   * @param floor contestant to compare it with; `undefined` for the floor itself
   */
  measure(arena: Arena, contestant: Contestant, pace: Pace, floor?: Contestant): Promise<Measurement>;
  /** Returns the seconds that one contestant takes, for the progress line. */
  estimateSeconds(pace: Pace): number;
}

/** Lengths of the measurements, and kinds that are optional. */
export interface Pace {
  readonly raceMs: number;
  /**
   * Milliseconds before a race for the compiler and the connections. After 300 ms a single caller still spends half of
   * its processor time on compilation.
   */
  readonly warmUpMs: number;
  /** Number of slices that the floor and a contestant race in turns. */
  readonly slices: number;
  readonly sliceMs: number;
  /** Number of fresh processes whose first second is measured. */
  readonly freshProcesses: number;
  readonly waitingMs: number;
  /** Whether to count requests, in a run of its own. */
  readonly countsRequests: boolean;
  /** Whether to profile the processor time, in a run of its own. */
  readonly profilesProcessor: boolean;
  readonly quick: boolean;
}

export const PACES = {
  full: {
    raceMs: 2_000,
    warmUpMs: 4_000,
    slices: 10,
    sliceMs: 150,
    freshProcesses: 3,
    waitingMs: 5_000,
    countsRequests: true,
    profilesProcessor: false,
    quick: false,
  },
  quick: {
    raceMs: 500,
    warmUpMs: 150,
    slices: 4,
    sliceMs: 150,
    freshProcesses: 1,
    waitingMs: 1_000,
    countsRequests: true,
    profilesProcessor: false,
    quick: true,
  },
} as const satisfies Record<string, Pace>;
