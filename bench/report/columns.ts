import type { Metric } from '../scenarios/scenario.js';

export interface Column {
  readonly heading: string;
  readonly format: (value: number) => string;
}

const formatInteger = (value: number): string => Math.round(value).toLocaleString('en');
/** Formats a number with at least three significant digits. */
const formatThreeDigits = (value: number): string =>
  Math.abs(value) >= 100 ? formatInteger(value) : String(Number(value.toPrecision(3)));
const formatMs = (value: number): string => `${formatThreeDigits(value)} ms`;
const formatUs = (value: number): string => `${formatThreeDigits(value)} µs`;

export const COLUMNS: Readonly<Record<Metric, Column>> = {
  timesFloor: { heading: '× floor', format: formatThreeDigits },
  usTimesFloor: { heading: 'processor time, × floor', format: formatThreeDigits },
  usEach: { heading: 'processor time each', format: formatUs },
  bytesEach: { heading: 'allocated each', format: (value) => `${formatInteger(value)} B` },
  perSecond: { heading: 'acquisitions/s', format: formatInteger },
  share: { heading: 'of what the time inside allows', format: formatThreeDigits },
  requestsEach: { heading: 'requests each', format: formatThreeDigits },
  requestsPerSecond: { heading: 'requests/s', format: formatThreeDigits },
  firstMs: { heading: 'first in', format: formatMs },
  allMs: { heading: 'all in', format: formatMs },
  meanMs: { heading: 'mean wait', format: formatMs },
  medianMs: { heading: 'median wait', format: formatMs },
  p99Ms: { heading: 'p99 wait', format: formatMs },
  p99ToMean: { heading: 'p99 / mean wait', format: formatThreeDigits },
  longestMs: { heading: 'longest wait', format: formatMs },
  longestWriterMs: { heading: 'longest wait of a writer', format: formatMs },
  evenness: { heading: 'slowest / fastest process', format: formatThreeDigits },
  bytesHeld: { heading: 'heap of a held lock', format: (value) => `${formatInteger(value)} B` },
  bytesWaiting: { heading: 'heap of a waiter', format: (value) => `${formatInteger(value)} B` },
  cpuPercent: { heading: 'of a core', format: (value) => `${formatThreeDigits(value)} %` },
  usCore: { heading: 'our core', format: formatUs },
  usBackend: { heading: 'our backend', format: formatUs },
  usPackages: { heading: 'packages', format: formatUs },
  usNode: { heading: 'Node', format: formatUs },
  usGarbage: { heading: 'garbage collection', format: formatUs },
  usBenchmark: { heading: 'benchmark', format: formatUs },
  usServer: { heading: 'server', format: formatUs },
  serverTimesFloor: { heading: 'server, × floor', format: formatThreeDigits },
  usInCommands: { heading: 'in commands', format: formatUs },
  commandsTimesFloor: { heading: 'in commands, × floor', format: formatThreeDigits },
  overtaken: { heading: 'overtaken', format: formatInteger },
  starved: { heading: 'starved', format: formatInteger },
  failures: { heading: 'failures', format: formatInteger },
  overlaps: { heading: 'overlaps', format: formatInteger },
};

export function formatMetric(metric: Metric, value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? '–' : COLUMNS[metric].format(value);
}
