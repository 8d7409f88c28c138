import type { Arena } from '../arena.js';
import type { Contestant } from '../contestants/contestant.js';

/** What is measured, by the name of its column in the report; see `report/columns.ts`. */
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

/** What must not happen to anybody. */
export const FAULTS: readonly Metric[] = ['starved', 'failures', 'overlaps'];

export type Figures = Readonly<Partial<Record<Metric, number>>>;

export interface Measurement {
  readonly figures: Figures;
  /** Of the first failure. */
  readonly failure?: string;
  /** How long callers waited: the 0th to the 100th of 100 parts. */
  readonly waitsMs?: readonly number[];
}

export interface Scenario {
  readonly id: string;
  readonly title: string;
  /** Its figures are compared with those of the floor, measured right before. */
  readonly againstFloor: boolean;
  /** Counts that come out the same every time are taken once. */
  readonly once?: true;
  /** Where it stands on a scaling curve. */
  readonly point?: { readonly curve: string; readonly x: number };
  /** Who can take part. */
  admits(contestant: Contestant, arena: Arena): boolean;
  measure(arena: Arena, contestant: Contestant, pace: Pace): Promise<Measurement>;
  /** About so many seconds for one contestant, for the progress line. */
  seconds(pace: Pace): number;
}

/** How long to look. */
export interface Pace {
  /** Of a race. */
  readonly raceMs: number;
  /** Before it, for the compiler and the connections. */
  readonly warmUpMs: number;
  readonly waitingMs: number;
  /** Whether to count requests too, in a run of its own. */
  readonly counts: boolean;
  /** Whether to look where the processor time goes, in a run of its own. */
  readonly profiles: boolean;
  readonly quick: boolean;
}

export const PACES = {
  full: { raceMs: 2_000, warmUpMs: 500, waitingMs: 5_000, counts: true, profiles: false, quick: false },
  quick: { raceMs: 500, warmUpMs: 250, waitingMs: 1_000, counts: true, profiles: false, quick: true },
} as const satisfies Record<string, Pace>;
