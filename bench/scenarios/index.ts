import type { Contestant } from '../contestants/contestant.js';
import { COLD } from './cold.js';
import { footprint, waitingFootprint } from './footprint.js';
import { holding } from './holding.js';
import { race, type RaceSettings } from './race.js';
import type { Scenario } from './scenario.js';
import { WAITING } from './waiting.js';

/** The scenarios of the table, in its order. */
const TABLE: readonly Scenario[] = [
  COLD,
  race({
    id: 'S1',
    title: 'One caller, one key',
    keys: 'each',
    processes: 1,
    callers: 1,
    rhythm: 'ceaseless',
    insideMs: 0,
    looks: ['slices'],
    metrics: ['perSecond', 'timesFloor', 'usEach', 'usTimesFloor', 'bytesEach', 'medianMs', 'p99Ms'],
  }),
  race({
    id: 'S2',
    title: '256 callers of one process, a key each',
    keys: 'each',
    processes: 1,
    callers: 256,
    rhythm: 'ceaseless',
    insideMs: 0,
    looks: ['slices'],
    metrics: ['perSecond', 'timesFloor', 'usEach', 'usTimesFloor', 'bytesEach', 'medianMs', 'p99Ms'],
  }),
  race({
    id: 'S3',
    title: 'bursts of 100 callers of one process, one key, once each',
    keys: 'one',
    processes: 1,
    callers: 100,
    rhythm: 'bursts',
    insideMs: 0,
    looks: ['slices'],
    metrics: ['perSecond', 'timesFloor', 'requestsEach', 'p99Ms', 'overtaken'],
  }),
  race({
    id: 'S4a',
    title: '4 processes of 25 callers, one key, nothing inside',
    keys: 'one',
    processes: 4,
    callers: 25,
    rhythm: 'ceaseless',
    insideMs: 0,
    looks: ['slices', 'long'],
    metrics: ['perSecond', 'timesFloor', 'requestsEach', 'p99Ms', 'p99ToMean', 'longestMs', 'evenness'],
  }),
  race({
    id: 'S4b',
    title: '4 processes of 25 callers, one key, 2 ms inside',
    keys: 'one',
    processes: 4,
    callers: 25,
    rhythm: 'ceaseless',
    insideMs: 2,
    looks: ['long'],
    metrics: ['perSecond', 'share', 'requestsEach', 'p99Ms', 'p99ToMean', 'longestMs', 'evenness'],
  }),
  WAITING,
  holding(30_000),
  holding(3_000),
];

/** All are on the curve of contention; the others show how we grow. */
const oursOnly = ({ packageName, alone, racesOnly }: Contestant): boolean => !packageName && !alone && !racesOnly;

const CURVES: readonly Scenario[] = [
  ...[1, 10, 100, 1_000, 10_000].map((callers) =>
    point('keys', callers, { keys: 'each', processes: 1, callers }, `${callers} callers, a key each`),
  ),
  ...[1, 10, 100, 1_000].map((callers) =>
    point('waiters', callers, { keys: 'one', processes: 1, callers }, `${callers} callers, one key`),
  ),
  ...[1, 2, 4, 8].map((processes) =>
    point('processes', processes, { keys: 'one', processes, callers: 25 }, `${processes} × 25, one key`),
  ),
  ...[1, 100, 10_000, 100_000].map((count) => footprint(count, (who) => oursOnly(who) && who.renews)),
  waitingFootprint((who) => oursOnly(who) && who.renews),
];

export const SCENARIOS: readonly Scenario[] = [...TABLE, ...CURVES];

function point(
  curve: string,
  x: number,
  settings: Pick<RaceSettings, 'keys' | 'processes' | 'callers'>,
  title: string,
): Scenario {
  return race({
    id: `${curve}-${x}`,
    title,
    ...settings,
    rhythm: curve === 'waiters' ? 'bursts' : 'ceaseless',
    insideMs: 0,
    looks: ['long'],
    metrics: ['perSecond', 'p99Ms'],
    point: { curve, x },
    ...(curve === 'waiters' ? {} : { only: oursOnly }),
  });
}
