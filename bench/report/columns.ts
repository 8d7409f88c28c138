import type { Metric } from '../scenarios/scenario.js';

export interface Column {
  readonly heading: string;
  readonly show: (value: number) => string;
}

const whole = (value: number): string => Math.round(value).toLocaleString('en');
/** Three digits that mean something. */
const short = (value: number): string => (Math.abs(value) >= 100 ? whole(value) : String(Number(value.toPrecision(3))));
const ms = (value: number): string => `${short(value)} ms`;
/** Processor time for one acquisition and its release. */
const us = (value: number): string => `${short(value)} µs`;

export const COLUMNS: Readonly<Record<Metric, Column>> = {
  timesFloor: { heading: '× floor', show: short },
  usTimesFloor: { heading: 'processor time, × floor', show: short },
  usEach: { heading: 'processor time each', show: us },
  bytesEach: { heading: 'allocated each', show: (value) => `${whole(value)} B` },
  perSecond: { heading: 'acquisitions/s', show: whole },
  share: { heading: 'of what the time inside allows', show: short },
  requestsEach: { heading: 'requests each', show: short },
  requestsPerSecond: { heading: 'requests/s', show: short },
  firstMs: { heading: 'first in', show: ms },
  allMs: { heading: 'all in', show: ms },
  meanMs: { heading: 'mean wait', show: ms },
  medianMs: { heading: 'median wait', show: ms },
  p99Ms: { heading: 'p99 wait', show: ms },
  p99ToMean: { heading: 'p99 / mean wait', show: short },
  longestMs: { heading: 'longest wait', show: ms },
  evenness: { heading: 'slowest / fastest process', show: short },
  bytesHeld: { heading: 'heap of a held lock', show: (value) => `${whole(value)} B` },
  bytesWaiting: { heading: 'heap of a waiter', show: (value) => `${whole(value)} B` },
  cpuPercent: { heading: 'of a core', show: (value) => `${short(value)} %` },
  usCore: { heading: 'our core', show: us },
  usBackend: { heading: 'our backend', show: us },
  usPackages: { heading: 'packages', show: us },
  usNode: { heading: 'Node', show: us },
  usGarbage: { heading: 'garbage collection', show: us },
  usBenchmark: { heading: 'benchmark', show: us },
  usServer: { heading: 'server', show: us },
  overtaken: { heading: 'overtaken', show: whole },
  starved: { heading: 'starved', show: whole },
  failures: { heading: 'failures', show: whole },
  overlaps: { heading: 'overlaps', show: whole },
};

export function shown(metric: Metric, value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? '–' : COLUMNS[metric].show(value);
}
