import { callListener } from '../contract/call-listener.js';
import { type CallTrace, type LockTracer, toTracedHold } from '../events/lock-tracer.js';
import type { Hold } from '../holding/hold.js';
import { KeyHeld } from './key-held.js';

export interface TraceableCall<Result> {
  readonly key: string;
  readonly options: { readonly waitMs: number };
  run(): Promise<Result>;
}

/** Runs an acquisition, and tells the tracers its start and its result, in the caller's async context. */
export async function runTraced<Result extends Hold | KeyHeld>(
  acquisition: TraceableCall<Result>,
  tracers: readonly LockTracer[],
  backend: string,
): Promise<Result> {
  const { key, options } = acquisition;
  const tracedCall = { key, backend, waitMs: options.waitMs };
  const traces = tracers.map((tracer) => callListener('a lock tracer threw', () => tracer.begin(tracedCall)));
  const endTraces = (endTrace: (trace: CallTrace) => void): void => {
    for (const trace of traces) if (trace) callListener('a lock tracer threw', () => endTrace(trace));
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
