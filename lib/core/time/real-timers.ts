import { performance } from 'node:perf_hooks';
import * as timers from 'node:timers';

/**
 * Timers of Node, read when the package is loaded. Later a test framework may replace the global timers and those of
 * `node:timers` by fakes, while a server counts in real time.
 */
export const { clearImmediate, clearTimeout, setImmediate, setInterval, setTimeout } = timers;

/** Returns the milliseconds since `PROCESS_START_MS`. The result never decreases. */
export const monotonicNow: () => number = performance.now.bind(performance);

/** Time in milliseconds that the wall clock showed when `monotonicNow` was 0. */
export const PROCESS_START_MS: number = performance.timeOrigin;
