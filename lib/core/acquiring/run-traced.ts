import type { CallTrace, LockTracer } from '../events/lock-tracer.js';
import { emitWarningOf } from '../events/observers.js';
import type { Hold } from '../holding/hold.js';
import type { Acquisition } from './acquisition.js';
import { KeyHeld } from './key-held.js';

/** Runs an acquisition in the caller's context and tells the tracers how it ended. Errors of tracers disturb nothing. */
export async function runTraced(
  acquisition: Acquisition,
  tracers: readonly LockTracer[],
  backend: string,
): Promise<Hold | KeyHeld> {
  const { key, options } = acquisition;
  const call = { key, backend, waitMs: options.waitMs };
  const traces = tracers.map((tracer) => ignoreErrors(() => tracer.begin(call)));
  const tell = (how: (trace: CallTrace) => void): void => {
    for (const trace of traces) if (trace) ignoreErrors(() => how(trace));
  };
  try {
    const held = await acquisition.run();
    tell((trace) => (held instanceof KeyHeld ? trace.refused() : trace.granted(held)));
    return held;
  } catch (error) {
    tell((trace) => trace.failed(error));
    throw error;
  }
}

function ignoreErrors<T>(tell: () => T): T | undefined {
  try {
    return tell();
  } catch (error) {
    emitWarningOf('a lock tracer threw', error);
    return undefined;
  }
}
