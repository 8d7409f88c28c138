import type { RaceSettings } from './race.js';
import type { Metric } from './scenario.js';

/** Three clocks, the callers', their process's and the server's, and what the calls allocate. */
const UNCONTENDED_METRICS: readonly Metric[] = [
  'perSecond',
  'timesFloor',
  'usEach',
  'usTimesFloor',
  'usServer',
  'serverTimesFloor',
  'usInCommands',
  'commandsTimesFloor',
  'bytesEach',
  'medianMs',
  'p99Ms',
];

type RaceKind = Omit<RaceSettings, 'id' | 'title'>;

/** Race of one caller without competitors. */
export const ALONE: RaceKind = {
  keys: 'each',
  processes: 1,
  callers: 1,
  rhythm: 'ceaseless',
  holdMs: 0,
  measurements: ['slices'],
  metrics: UNCONTENDED_METRICS,
};

/** Race of 100 callers of one process, who ask for one key at once. */
export const BURSTS: RaceKind = {
  keys: 'one',
  processes: 1,
  callers: 100,
  rhythm: 'bursts',
  holdMs: 0,
  measurements: ['slices'],
  metrics: ['perSecond', 'timesFloor', 'requestsEach', 'p99Ms', 'overtaken'],
};
