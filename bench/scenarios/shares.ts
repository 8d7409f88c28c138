import { ALONE, BURSTS } from './race-kinds.js';
import { raceScenario } from './race.js';
import type { Scenario } from './scenario.js';
import { WAITING_FOR_PERMITS } from './waiting.js';

/** Scenarios of locks that several callers hold at once. */
export const SHARES: readonly Scenario[] = [
  raceScenario({ id: 'R1', title: 'One reader, one key', onlyIn: 'redis-readers', ...ALONE }),
  raceScenario({
    id: 'R3',
    title: 'bursts of 100 readers of one process, one key, once each',
    onlyIn: 'redis-readers',
    ...BURSTS,
  }),
  raceScenario({
    id: 'R4',
    title: '4 processes of 25 readers and a writer, one key, 2 ms inside',
    onlyIn: 'redis-readers',
    keys: 'one',
    processes: 4,
    callers: 26,
    writers: 1,
    rhythm: 'ceaseless',
    holdMs: 2,
    measurements: ['slices', 'long'],
    metrics: ['perSecond', 'timesFloor', 'requestsEach', 'p99Ms', 'longestMs', 'longestWriterMs', 'evenness'],
  }),
  raceScenario({ id: 'P1', title: 'One permit of 10, one caller', onlyIn: 'redis-permits', ...ALONE }),
  raceScenario({
    id: 'P3',
    title: 'bursts of 100 callers of one process, 10 permits, once each',
    onlyIn: 'redis-permits',
    ...BURSTS,
  }),
  raceScenario({
    id: 'P4',
    title: '4 processes of 25 callers, 10 permits, 20 ms inside',
    onlyIn: 'redis-permits',
    keys: 'one',
    processes: 4,
    callers: 25,
    rhythm: 'ceaseless',
    holdMs: 20,
    measurements: ['long'],
    metrics: ['perSecond', 'requestsEach', 'p99Ms', 'p99ToMean', 'longestMs', 'evenness'],
  }),
  WAITING_FOR_PERMITS,
];
