import type { CallTrace, LockTracer } from '../events/lock-tracer.js';
import { warnOf } from '../events/observers.js';
import type { Hold } from '../holding/hold.js';
import type { HoldRegistry } from '../holding/hold-registry.js';
import type { Acquisition } from './acquisition.js';
import { KeyHeld } from './blockers.js';

/** Runs it in the caller's context, where tracers may follow it. */
export function runFollowed(acquisition: Acquisition, { settings }: HoldRegistry): Promise<Hold | KeyHeld> {
  const { observers, backend } = settings;
  const { tracers } = observers;
  return tracers.length === 0 ? acquisition.run() : runTraced(acquisition, tracers, backend.name);
}

/** Tells the tracers how it ended. What they throw disturbs nothing. */
async function runTraced(
  acquisition: Acquisition,
  tracers: readonly LockTracer[],
  backend: string,
): Promise<Hold | KeyHeld> {
  const { key, options } = acquisition;
  const call = { key, backend, waitMs: options.waitMs };
  const traces = tracers.map((tracer) => quietly(() => tracer.begin(call)));
  const tell = (how: (trace: CallTrace) => void): void => {
    for (const trace of traces) if (trace) quietly(() => how(trace));
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

function quietly<T>(tell: () => T): T | undefined {
  try {
    return tell();
  } catch (error) {
    warnOf('a lock tracer threw', error);
    return undefined;
  }
}
