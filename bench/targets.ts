import type { BackendName } from './competitions.js';
import { PERMITS } from './contestants/shares.js';
import type { Metric } from './scenarios/scenario.js';

/** Bound for a metric of one contestant in one scenario. */
export interface Target {
  readonly scenario: string;
  readonly contestant: string;
  readonly metric: Metric;
  readonly atLeast?: number;
  readonly atMost?: number;
}

const OURS = 'ours';
const QUEUE = 'ours, queue';
const PLAIN = 'ours, plain';

const REDIS: readonly Target[] = [
  ...[QUEUE, PLAIN].map(
    (contestant) => ({ scenario: 'cold', contestant, metric: 'usTimesFloor', atMost: 1.5 }) as const,
  ),
  { scenario: 'S1', contestant: QUEUE, metric: 'timesFloor', atLeast: 0.85 },
  { scenario: 'S1', contestant: PLAIN, metric: 'timesFloor', atLeast: 0.95 },
  { scenario: 'S1', contestant: `${QUEUE}, release not awaited`, metric: 'timesFloor', atLeast: 1.3 },
  ...[QUEUE, PLAIN].flatMap(
    (contestant) =>
      [
        { scenario: 'S1', contestant, metric: 'usTimesFloor', atMost: 1.3 },
        { scenario: 'S1', contestant, metric: 'commandsTimesFloor', atMost: 2.5 },
        { scenario: 'S2', contestant, metric: 'commandsTimesFloor', atMost: 2.5 },
      ] as const,
  ),
  ...[QUEUE, PLAIN].flatMap(
    (contestant) =>
      [
        { scenario: 'S2', contestant, metric: 'timesFloor', atLeast: 1 },
        { scenario: 'S2', contestant, metric: 'usTimesFloor', atMost: 1 },
        { scenario: 'S2', contestant, metric: 'bytesEach', atMost: 9_000 },
      ] as const,
  ),
  { scenario: 'S3', contestant: QUEUE, metric: 'timesFloor', atLeast: 250 },
  { scenario: 'S3', contestant: QUEUE, metric: 'requestsEach', atMost: 0.05 },
  { scenario: 'S3', contestant: QUEUE, metric: 'overtaken', atMost: 0 },
  { scenario: 'S4a', contestant: QUEUE, metric: 'timesFloor', atLeast: 60 },
  { scenario: 'S4a', contestant: QUEUE, metric: 'starved', atMost: 0 },
  { scenario: 'S4a', contestant: QUEUE, metric: 'longestMs', atMost: 100 },
  { scenario: 'S4b', contestant: QUEUE, metric: 'requestsEach', atMost: 0.4 },
  { scenario: 'S4b', contestant: QUEUE, metric: 'p99Ms', atMost: 300 },
  { scenario: 'S4b', contestant: QUEUE, metric: 'share', atLeast: 0.85 },
  { scenario: 'S5', contestant: QUEUE, metric: 'requestsPerSecond', atMost: 2 },
  { scenario: 'S5', contestant: QUEUE, metric: 'firstMs', atMost: 3 },
  { scenario: 'S5', contestant: QUEUE, metric: 'allMs', atMost: 10 },
  { scenario: 'S6-30s', contestant: QUEUE, metric: 'requestsPerSecond', atMost: 2 },
  { scenario: 'S6-3s', contestant: QUEUE, metric: 'requestsPerSecond', atMost: 10 },
  { scenario: 'held-100000', contestant: QUEUE, metric: 'bytesHeld', atMost: 2_048 },
  { scenario: 'held-100000', contestant: QUEUE, metric: 'cpuPercent', atMost: 5 },
  { scenario: 'waiting-10000', contestant: QUEUE, metric: 'bytesWaiting', atMost: 1_024 },
  ...fairnessTargets(QUEUE),
];

const READER = 'ours, shared';
const PERMIT = `ours, one of ${PERMITS} permits`;

/** R1 and P1 are to have 0.85 of our mutex, about half of the floor. */
const READER_TARGETS: readonly Target[] = [
  { scenario: 'R1', contestant: READER, metric: 'timesFloor', atLeast: 0.5 },
  { scenario: 'R3', contestant: READER, metric: 'timesFloor', atLeast: 200 },
  { scenario: 'R3', contestant: READER, metric: 'requestsEach', atMost: 0.02 },
  { scenario: 'R4', contestant: READER, metric: 'timesFloor', atLeast: 20 },
  { scenario: 'R4', contestant: READER, metric: 'longestWriterMs', atMost: 102 },
  { scenario: 'R4', contestant: READER, metric: 'starved', atMost: 0 },
];

const PERMIT_TARGETS: readonly Target[] = [
  { scenario: 'P1', contestant: PERMIT, metric: 'timesFloor', atLeast: 0.5 },
  { scenario: 'P3', contestant: PERMIT, metric: 'timesFloor', atLeast: 50 },
  { scenario: 'P3', contestant: PERMIT, metric: 'requestsEach', atMost: 0.1 },
  { scenario: 'P3', contestant: PERMIT, metric: 'overtaken', atMost: 0 },
  { scenario: 'P4', contestant: PERMIT, metric: 'perSecond', atLeast: 450 },
  { scenario: 'P4', contestant: PERMIT, metric: 'requestsEach', atMost: 2.1 },
  { scenario: 'P4', contestant: PERMIT, metric: 'p99ToMean', atMost: 2 },
  { scenario: 'P5', contestant: PERMIT, metric: 'requestsPerSecond', atMost: 2 },
  { scenario: 'P5', contestant: PERMIT, metric: 'firstMs', atMost: 3 },
];

export const TARGETS: Readonly<Record<BackendName, readonly Target[]>> = {
  redis: REDIS,
  'redis-readers': READER_TARGETS,
  'redis-permits': PERMIT_TARGETS,
  redlock: [...uncontendedTargets(0.8), ...handOffTargets()],
  memcached: [...uncontendedTargets(0.9), ...handOffTargets()],
  zookeeper: [...uncontendedTargets(0.85), ...handOffTargets(), ...fairnessTargets(OURS)],
  etcd: [...uncontendedTargets(0.85), ...handOffTargets(), ...fairnessTargets(OURS)],
  postgres: [...uncontendedTargets(0.85), ...handOffTargets(), ...fairnessTargets(OURS)],
  mariadb: uncontendedTargets(0.85),
  sqlite: uncontendedTargets(0.85),
};

function uncontendedTargets(atLeast: number): readonly Target[] {
  return [{ scenario: 'S1', contestant: OURS, metric: 'timesFloor', atLeast }];
}

function handOffTargets(): readonly Target[] {
  return [{ scenario: 'S3', contestant: OURS, metric: 'timesFloor', atLeast: 50 }];
}

function fairnessTargets(contestant: string): readonly Target[] {
  return ['S4a', 'S4b'].flatMap((scenario) => [
    { scenario, contestant, metric: 'evenness', atLeast: 0.9 },
    { scenario, contestant, metric: 'p99ToMean', atMost: 3 },
  ]);
}
