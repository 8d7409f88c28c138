import type { Contestant } from '../contestants/contestant.js';
import { COLD } from './cold.js';
import { holdFootprintScenario, waitFootprintScenario } from './footprint.js';
import { heldLocksScenario } from './holding.js';
import { ALONE, BURSTS } from './race-kinds.js';
import { raceScenario, type RaceSettings } from './race.js';
import type { Scenario } from './scenario.js';
import { SHARES } from './shares.js';
import { WAITING } from './waiting.js';

/** Scenarios of the table, in its order. */
const TABLE: readonly Scenario[] = [
  COLD,
  raceScenario({ id: 'S1', title: 'One caller, one key', ...ALONE }),
  raceScenario({ id: 'S2', title: '256 callers of one process, a key each', ...ALONE, callers: 256 }),
  raceScenario({ id: 'S3', title: 'bursts of 100 callers of one process, one key, once each', ...BURSTS }),
  raceScenario({
    id: 'S4a',
    title: '4 processes of 25 callers, one key, nothing inside',
    keys: 'one',
    processes: 4,
    callers: 25,
    rhythm: 'ceaseless',
    holdMs: 0,
    measurements: ['slices', 'long'],
    metrics: ['perSecond', 'timesFloor', 'requestsEach', 'p99Ms', 'p99ToMean', 'longestMs', 'evenness'],
  }),
  raceScenario({
    id: 'S4b',
    title: '4 processes of 25 callers, one key, 2 ms inside',
    keys: 'one',
    processes: 4,
    callers: 25,
    rhythm: 'ceaseless',
    holdMs: 2,
    measurements: ['long'],
    metrics: ['perSecond', 'share', 'requestsEach', 'p99Ms', 'p99ToMean', 'longestMs', 'evenness'],
  }),
  WAITING,
  heldLocksScenario(30_000),
  heldLocksScenario(3_000),
];

/** Returns whether a contestant is on all curves. Other contestants are on the curve of contention only. */
const isFloorOrLibrary = ({ packageName, isUncontendedOnly, isRaceVariant }: Contestant): boolean =>
  !packageName && !isUncontendedOnly && !isRaceVariant;

const CURVES: readonly Scenario[] = [
  ...[1, 10, 100, 1_000, 10_000].map((callers) =>
    curveScenario('keys', callers, { keys: 'each', processes: 1, callers }, `${callers} callers, a key each`),
  ),
  ...[1, 10, 100, 1_000].map((callers) =>
    curveScenario('waiters', callers, { keys: 'one', processes: 1, callers }, `${callers} callers, one key`),
  ),
  ...[1, 2, 4, 8].map((processes) =>
    curveScenario('processes', processes, { keys: 'one', processes, callers: 25 }, `${processes} × 25, one key`),
  ),
  ...[1, 100, 10_000, 100_000].map((count) =>
    holdFootprintScenario(count, (who) => isFloorOrLibrary(who) && who.renewsLease),
  ),
  waitFootprintScenario((who) => isFloorOrLibrary(who) && who.renewsLease),
];

export const SCENARIOS: readonly Scenario[] = [...TABLE, ...SHARES, ...CURVES];

function curveScenario(
  curve: string,
  x: number,
  settings: Pick<RaceSettings, 'keys' | 'processes' | 'callers'>,
  title: string,
): Scenario {
  return raceScenario({
    id: `${curve}-${x}`,
    title,
    ...settings,
    rhythm: curve === 'waiters' ? 'bursts' : 'ceaseless',
    holdMs: 0,
    measurements: ['long'],
    metrics: ['perSecond', 'p99Ms'],
    point: { curve, x },
    ...(curve === 'waiters' ? {} : { canTakePart: isFloorOrLibrary }),
  });
}
