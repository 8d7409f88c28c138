import type { Metric } from './scenario.js';

/** Three clocks, the callers', their process's and the server's, and what the calls allocate. */
export const UNCONTENDED_METRICS: readonly Metric[] = [
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
