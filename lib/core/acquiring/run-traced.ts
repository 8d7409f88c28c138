import { callTracer } from '../events/call-tracer.js';
import { type CallTrace, type LockTracer, toTracedHold } from '../events/lock-tracer.js';
import type { Hold } from '../holding/hold.js';
import type { Acquisition } from './acquisition.js';
import { KeyHeld } from './key-held.js';

/** Runs an acquisition in the caller's async context, as `LockTracer` promises. */
export async function runTraced(
  acquisition: Acquisition,
  tracers: readonly LockTracer[],
  backend: string,
): Promise<Hold | KeyHeld> {
  const { key, options } = acquisition;
  const call = { key, backend, waitMs: options.waitMs };
  const traces = tracers.map((tracer) => callTracer(() => tracer.begin(call)));
  const endTraces = (endTrace: (trace: CallTrace) => void): void => {
    for (const trace of traces) if (trace) callTracer(() => endTrace(trace));
  };
  try {
    const result = await acquisition.run();
    endTraces((trace) => (result instanceof KeyHeld ? trace.refused() : trace.granted(toTracedHold(result, backend))));
    return result;
  } catch (error) {
    endTraces((trace) => trace.failed(error));
    throw error;
  }
}
